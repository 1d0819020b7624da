#pragma once
#include <cstdint>

#include "autograd/kernels/elementwise.h"

HEED_BEGIN
namespace kernels {

/// h[r, c] = x[r, c] + bias[c], y = f(h); h may be x, or null if f's gradient does not need it; y
/// may be x unless h is x.
void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                    std::int64_t rows, std::int64_t cols);

}  // namespace kernels
HEED_END
