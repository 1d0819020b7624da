#pragma once
/// More sums, and a search.
#include <cstdint>

#include "autograd/kernels/reduce.h"

HEED_BEGIN
namespace kernels {

/// Like sum, these accumulate in double.
double sum_squares(const real* x, std::int64_t n);
real dot(const real* x, const real* y, std::int64_t n);
/// The first index i ≥ from with x[i] > bound, or n. NaN is never above the bound.
std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n);
/// y = x_0 + x_1 + … for `count` arrays, added as a binary tree: ((0+1)+(2+3))+…. y may be x_0.
/// Null arrays count as zeros.
void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n);

/// The instruction set that the kernels, except those of gemm/packed.cpp, use on this processor:
/// "AVX3", "AVX2", "NEON", …
const char* vector_name();

}  // namespace kernels
HEED_END
