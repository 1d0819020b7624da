#pragma once
/// Sums in a fixed order, which does not depend on threads or alignment.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// Σ x, accumulated in double; NaN and infinity propagate.
real sum(const real* x, std::int64_t n);
/// y[c] += Σ_r x[r, c]
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y);

}  // namespace kernels
HEED_END
