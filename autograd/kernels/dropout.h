#pragma once
#include <cstdint>

#include "autograd/base/random.h"
#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// y[i] = x[i] keep(i) / (1 − q), where q = round(65536 p) / 65536 and keep(i), 0 or 1, is a
/// function of the key and `first + i` only: 16 bits of Philox per value. The layout of the bits is
/// fixed, so that the mask is the same for every vector width. Each chunk of 128 values uses 16
/// Philox blocks: chunk c uses blocks 16 c to 16 c + 15 of the key. Value e of a chunk uses half
/// e/16 % 2 of word e/32 of block e % 16, where half 0 is the low half. `first` must be a multiple
/// of 128. y may be x. A dropped value becomes 0, even NaN or infinity.
void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n);
/// 1 / (1 − q), the factor of the kept values; 0 for q = 1.
real dropout_factor(real p);
/// y[i] = r[i] + x[i] keep(i) / (1 − q).
void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n);

}  // namespace kernels
HEED_END
