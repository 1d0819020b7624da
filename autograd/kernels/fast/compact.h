#pragma once
/// Floats in two bytes or in one, with stochastic rounding: a value between two neighbours becomes
/// the upper one with the probability that makes its expectation exact (Gupta et al., "Deep Learning
/// with Limited Numerical Precision", 2015). An optimizer changes its moments by small amounts;
/// on average they change correctly even if an amount is smaller than the distance between neighbours.
///
/// Two bytes: bfloat16, the upper 16 bits of a float.
/// One byte: 64 values form a block and share an exponent. Each has an exponent relative to it and
/// three fraction bits, as in the microscaling formats of the Open Compute Project (version 1.0,
/// 2023), whose blocks have 32 values. In a block with exponent E, code c has the value
///   2^(E − K + 1) (c / 8)                          for c < 8
///   2^(E − K + c div 8) (1 + (c mod 8) / 8)        for c ≥ 8.
/// With a sign, which is the highest bit, K = 15; without, K = 31, and no value may be negative.
/// E is the smallest exponent for which all values of the block are at most 1.875 · 2^E. Values that
/// the format can represent are stored exactly.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

constexpr std::int64_t block_values = 64;

/// Selects the random numbers that round the values first, first + 1, … of an array: 16 bits for each
/// value, from a hash of `key` and the index of the value, so they do not depend on threads or on the
/// order of calls. The hash is weak: keys must be hashes themselves, not consecutive numbers.
struct Rounding {
  std::uint32_t key = 0, first = 0;
};

/// Stores n finite values; n must be a multiple of block_values.
void store_bf16(const float* x, std::uint16_t* codes, std::int64_t n, const Rounding& rounding);
void load_bf16(const std::uint16_t* codes, float* x, std::int64_t n);
/// As above; `exponents` has an element for each block.
void store_blocks(bool with_sign, const float* x, std::uint8_t* codes, std::uint8_t* exponents,
                  std::int64_t n, const Rounding& rounding);
void load_blocks(bool with_sign, const std::uint8_t* codes, const std::uint8_t* exponents, float* x,
                 std::int64_t n);

}  // namespace kernels
HEED_END
