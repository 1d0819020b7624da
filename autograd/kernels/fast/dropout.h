#pragma once
#include <cstdint>

#include "autograd/base/random.h"
#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// y[i] = x[i] keep(i) / (1 − q), where q = round(65536 p) / 65536. keep(i) is 0 if 16 random bits
/// of Philox, as an integer, are below 65536 q, and 1 otherwise. The bits are a function of the key
/// and `first + i` only, so the mask is the same for every vector width: chunk c, the values 128 c
/// to 128 c + 127, uses blocks 16 c to 16 c + 15 of the key, and value e of a chunk uses half
/// e/16 % 2 of word e/32 of block e % 16, where half 0 is the low half. `first` must be a multiple
/// of 128. y may be x. A dropped value becomes 0, even NaN or infinity.
void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n);
/// 1 / (1 − q), the factor of the kept values; 0 for q = 1.
real dropout_factor(real p);
/// y[i] = r[i] + x[i] keep(i) / (1 − q), with keep and q as in dropout; y may be x or r.
void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n);

}  // namespace kernels
HEED_END
