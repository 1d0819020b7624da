#pragma once
/// Floats in two bytes or one, with stochastic rounding, for values that many small changes
/// accumulate in, such as an optimizer's moments: a value between two neighbours becomes the upper
/// one with the probability that makes its expectation exact, so changes smaller than the distance
/// of neighbours are not lost (Gupta et al., "Deep Learning with Limited Numerical Precision",
/// 2015).
///
/// Two bytes: bfloat16, the upper half of a float.
/// One byte: blocks of 64 values share an exponent, and each has an exponent below it and three
/// digits, as in the microscaling formats of the Open Compute Project (version 1.0, 2023), which
/// have blocks of 32. A code c of a block with exponent E and K exponents is the value
///   2^(E − K + 1) (c / 8)                          for c < 8
///   2^(E − K + c div 8) (1 + (c mod 8) / 8)        for c ≥ 8,
/// where K = 15 and the highest bit is the sign (`with_sign`), or K = 31 and no value is negative.
/// E is the smallest for which all values of the block are at most 1.875 · 2^E. If all are such
/// values already, they do not change.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

constexpr std::int64_t block_values = 64;

/// The rounding of the values first, first + 1, … of an array: 16 bits from a hash of `key` and the
/// place of a value, so it depends neither on the order of calls nor on threads. Similar keys must not
/// follow one another.
struct Rounding {
  std::uint32_t key = 0, first = 0;
};

/// Stores n finite values, a multiple of 64.
void store_bf16(const float* x, std::uint16_t* codes, std::int64_t n, const Rounding& rounding);
void load_bf16(const std::uint16_t* codes, float* x, std::int64_t n);
/// As above; `exponents` has one number for each block.
void store_blocks(bool with_sign, const float* x, std::uint8_t* codes, std::uint8_t* exponents,
               std::int64_t n, const Rounding& rounding);
void load_blocks(bool with_sign, const std::uint8_t* codes, const std::uint8_t* exponents, float* x,
                 std::int64_t n);

}  // namespace kernels
HEED_END
