#include "autograd/kernels/fast/compact.h"

#include <algorithm>

#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/compact.cpp"
#include "hwy/foreach_target.h"
// This header must follow foreach_target:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, block_values>;
using WordTag = hn::RebindToUnsigned<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
using HalfTag = hn::Rebind<std::uint16_t, FloatTag>;
using ByteTag = hn::Rebind<std::uint8_t, FloatTag>;
using Words = hn::Vec<WordTag>;
constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

constexpr std::uint32_t one = 127u << 23,
                        digit = 1u
                                << 20;  // the bits of 1.0f; the lowest fraction bit that is stored

HWY_INLINE Words set(std::uint32_t x) { return hn::Set(WordTag(), x); }
HWY_INLINE hn::Vec<FloatTag> floats(Words bits) { return hn::BitCast(FloatTag(), bits); }
HWY_INLINE hn::Vec<FloatTag> float_of(std::uint32_t bits) { return floats(set(bits)); }
template <class V>
HWY_INLINE Words bits_of(V v) {
  return hn::BitCast(WordTag(), v);
}
HWY_INLINE Words load(const float* x) { return bits_of(hn::LoadU(FloatTag(), x)); }

/// 16 random bits for each of the values from `i` on.
HWY_INLINE Words noise(const Rounding& r, std::int64_t i) {
  const Words place = hn::Iota(WordTag(), r.first + static_cast<std::uint32_t>(i));
  const Words x = hn::Xor(hn::Mul(place, set(0x9E3779B1)), set(r.key));
  return hn::ShiftRight<16>(hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), set(0x85EBCA6B)));
}

void store_bf16(const float* x, std::uint16_t* codes, std::int64_t n, const Rounding& rounding) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const Words rounded = hn::ShiftRight<16>(hn::Add(load(x + i), noise(rounding, i)));
    hn::StoreU(hn::TruncateTo(HalfTag(), rounded), HalfTag(), codes + i);
  }
}

void load_bf16(const std::uint16_t* codes, float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const Words code = hn::PromoteTo(WordTag(), hn::LoadU(HalfTag(), codes + i));
    hn::StoreU(floats(hn::ShiftLeft<16>(code)), FloatTag(), x + i);
  }
}

/// The biased exponent of a block, as in the bits of a float. It is clamped so that 2^E, 2^−E and all
/// values that the block can represent are normal numbers.
HWY_INLINE std::uint32_t exponent_of(const float* x) {
  Words top = set(0);
  for (std::int64_t i = 0; i < block_values; i += lanes)
    top = hn::Max(top, hn::And(load(x + i), set(0x7FFFFFFF)));
  const std::uint32_t largest = hn::GetLane(hn::MaxOfLanes(WordTag(), top));
  // The largest value that keeps the exponent is 1.875 · 2^E.
  return std::clamp((largest + digit - 1) >> 23, 40u, 253u);
}

template <bool with_sign>
HWY_INLINE void store_block(const float* x, std::uint8_t* codes, std::uint8_t& exponent,
                            const Rounding& rounding) {
  constexpr std::uint32_t k = with_sign ? 15 : 31, lowest = one - (k << 23);
  const std::uint32_t e = exponent_of(x);
  exponent = static_cast<std::uint8_t>(e);
  const auto unit = float_of((254u - e) << 23);           // 2^−E
  const auto per_step = float_of(one + ((k + 2) << 23));  // 8 / 2^(1 − K)
  const auto fraction = hn::Set(FloatTag(), 0x1p-16f);
  for (std::int64_t i = 0; i < block_values; i += lanes) {
    const Words bits = load(x + i), random = noise(rounding, i);
    const auto y =
        hn::Min(hn::Mul(floats(hn::And(bits, set(0x7FFFFFFF))), unit), hn::Set(FloatTag(), 1.875f));
    const auto above = hn::Mul(hn::ConvertTo(FloatTag(), hn::BitCast(IntTag(), random)), fraction);
    const Words few = bits_of(hn::ConvertTo(IntTag(), hn::MulAdd(y, per_step, above)));
    const Words normal =
        hn::ShiftRight<20>(hn::Add(hn::Sub(bits_of(y), set(lowest)), hn::ShiftLeft<4>(random)));
    const auto is_few = hn::Lt(hn::BitCast(IntTag(), bits_of(y)),
                               hn::Set(IntTag(), static_cast<std::int32_t>(lowest + (1u << 23))));
    Words code = hn::IfThenElse(hn::RebindMask(WordTag(), is_few), few, normal);
    if (with_sign) code = hn::Or(code, hn::ShiftLeft<7>(hn::ShiftRight<31>(bits)));
    hn::StoreU(hn::TruncateTo(ByteTag(), code), ByteTag(), codes + i);
  }
}

template <bool with_sign>
HWY_INLINE void load_block(const std::uint8_t* codes, std::uint8_t exponent, float* x) {
  constexpr std::uint32_t k = with_sign ? 15 : 31, lowest = one - (k << 23);
  const auto step = float_of(one - ((k + 2) << 23));
  const auto unit = float_of(static_cast<std::uint32_t>(exponent) << 23);  // 2^E
  for (std::int64_t i = 0; i < block_values; i += lanes) {
    const Words byte = hn::PromoteTo(WordTag(), hn::LoadU(ByteTag(), codes + i));
    const Words code = with_sign ? hn::And(byte, set(0x7F)) : byte;
    const auto few = hn::Mul(hn::ConvertTo(FloatTag(), hn::BitCast(IntTag(), code)), step);
    const auto normal = floats(hn::Add(hn::ShiftLeft<20>(code), set(lowest)));
    const auto is_few =
        hn::RebindMask(FloatTag(), hn::Lt(hn::BitCast(IntTag(), code), hn::Set(IntTag(), 8)));
    Words value = bits_of(hn::Mul(hn::IfThenElse(is_few, few, normal), unit));
    if (with_sign) value = hn::Or(value, hn::ShiftLeft<31>(hn::ShiftRight<7>(byte)));
    hn::StoreU(floats(value), FloatTag(), x + i);
  }
}

void store_blocks(bool with_sign, const float* x, std::uint8_t* codes, std::uint8_t* exponents,
                  std::int64_t n, const Rounding& rounding) {
  for (std::int64_t b = 0; b < n; b += block_values) {
    Rounding at = rounding;
    at.first += static_cast<std::uint32_t>(b);
    std::uint8_t& exponent = exponents[b / block_values];
    with_sign ? store_block<true>(x + b, codes + b, exponent, at)
              : store_block<false>(x + b, codes + b, exponent, at);
  }
}

void load_blocks(bool with_sign, const std::uint8_t* codes, const std::uint8_t* exponents, float* x,
                 std::int64_t n) {
  for (std::int64_t b = 0; b < n; b += block_values) {
    const std::uint8_t exponent = exponents[b / block_values];
    with_sign ? load_block<true>(codes + b, exponent, x + b)
              : load_block<false>(codes + b, exponent, x + b);
  }
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(store_bf16);
HWY_EXPORT(load_bf16);
HWY_EXPORT(store_blocks);
HWY_EXPORT(load_blocks);

void store_bf16(const float* x, std::uint16_t* codes, std::int64_t n, const Rounding& rounding) {
  HWY_DYNAMIC_DISPATCH(store_bf16)(x, codes, n, rounding);
}
void load_bf16(const std::uint16_t* codes, float* x, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(load_bf16)(codes, x, n);
}
void store_blocks(bool with_sign, const float* x, std::uint8_t* codes, std::uint8_t* exponents,
                  std::int64_t n, const Rounding& rounding) {
  HWY_DYNAMIC_DISPATCH(store_blocks)(with_sign, x, codes, exponents, n, rounding);
}
void load_blocks(bool with_sign, const std::uint8_t* codes, const std::uint8_t* exponents, float* x,
                 std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(load_blocks)(with_sign, codes, exponents, x, n);
}

}  // namespace kernels
HEED_END
#endif
