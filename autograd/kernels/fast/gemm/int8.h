#pragma once
/// Products of int8 matrices: a row consists of integers from −127 to 127 and a float scale, the
/// factor of all of them.
///   x ≈ s q,   s = max |x| / 127,   q = x (1 / s) rounded to nearest, ties to even
/// Scales are rounded up to 17 significant bits, so that s q is exact in float32: quantising s q
/// returns s and q. The error of a value is at most s / 2, up to rounding.
///   (A Bᵀ)[i, j] ≈ sᵃᵢ sᵇⱼ Σ qᵃ[i, p] qᵇ[j, p]
/// The sums are exact, so element [i, j] depends only on row i of A and row j of B, and is
/// independent of the other rows and the instruction set. A row with NaN, with an infinity or with
/// a magnitude of 2^127 or above has the scale NaN, and the products with it are NaN. A row of
/// magnitudes below 127 · 2^-126 counts as zeros.
/// Source: Wu, Judd, Zhang, Isaev and Micikevicius, "Integer quantization for deep learning
/// inference", 2020, sections 3.1 and 3.2 (scale quantisation, per-channel weights).
#include <cstdint>
#include <vector>

#include "autograd/base/team.h"
#include "autograd/memory/block.h"

HEED_BEGIN
namespace kernels {

/// Quantises each row of x [rows, cols]: sets q [rows, cols] and scales [rows].
void quantise_rows(const real* x, std::int64_t rows, std::int64_t cols, std::int8_t* q,
                   float* scales);
/// Computes x = s q, the inverse of quantise_rows up to quantisation errors.
void dequantise_rows(const std::int8_t* q, const float* scales, std::int64_t rows,
                     std::int64_t cols, real* x);
/// The scale of a row (0 and NaN as above), from the bits of its largest magnitude as a float.
float scale_for(std::uint32_t magnitude_bits);

/// The maximum number of values in a row; sums of more products could exceed 2^31 − 1.
constexpr std::int64_t max_int8_row = std::int64_t{1} << 17;

/// B [n, k], quantised and laid out for products on this processor; k from 1 to max_int8_row.
struct Int8Weights {
  template <class T>
  using Values = std::vector<T, BlockAllocator<T>>;
  std::int64_t n = 0, k = 0;
  /// B in the order in which the loops for an instruction set read it. Each panel contains w rows
  /// of B: for each group of g columns, those columns of the first row, of the second, … (w and g
  /// depend on the instruction set). Zeros fill the last panel and the last group.
  Values<std::int8_t> panels;
  Values<std::int32_t> starts;  ///< initial value of each row's sums
  Values<float> scales;         ///< scale of each row

  Int8Weights() = default;
  Int8Weights(const real* b, std::int64_t n, std::int64_t k);
  /// C = A Bᵀ: A is [m, k], C [m, n], both row-major without gaps. The rows of A are quantised
  /// first. `team`: as in PackedScope (packed.h).
  void multiply(const real* a, std::int64_t m, real* c, Team* team = nullptr) const;
};

namespace plain {
/// The reference product, with B as quantise_rows returns it.
void multiply_int8(const real* a, const std::int8_t* b, const float* scales, std::int64_t m,
                   std::int64_t n, std::int64_t k, real* c);
}  // namespace plain

}  // namespace kernels
HEED_END
