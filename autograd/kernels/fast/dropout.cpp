#include "autograd/kernels/fast/dropout.h"

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/dropout.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

using WordTag = hn::CappedTag<std::uint32_t, 16>;
using LongTag = hn::Repartition<std::uint64_t, WordTag>;
using Words = hn::Vec<WordTag>;
constexpr std::int64_t word_lanes = static_cast<std::int64_t>(hn::MaxLanes(WordTag()));
constexpr std::int64_t chunk = 128;  // number of values from 16 blocks of Philox

/// A Philox counter for each 64-bit lane, in the low halves. The 32-bit products ignore the high
/// halves, which contain garbage, so a round needs no shuffle.
struct Counters {
  Words c[4];

  HWY_INLINE void round(Words key0, Words key1) {
    const auto a = hn::MulEven(hn::Set(WordTag(), 0xD2511F53), c[0]);
    const auto b = hn::MulEven(hn::Set(WordTag(), 0xCD9E8D57), c[2]);
    const auto high = [](auto product)
                          HWY_ATTR { return hn::BitCast(WordTag(), hn::ShiftRight<32>(product)); };
    c[0] = hn::Xor3(high(b), c[1], key0);
    c[1] = hn::BitCast(WordTag(), b);
    c[2] = hn::Xor3(high(a), c[3], key1);
    c[3] = hn::BitCast(WordTag(), a);
  }
};

/// Computes the words of the 16 blocks from `position` on (RandomKey::block). Word w of block
/// `position` + b is at words[16 w + b].
HWY_INLINE void philox_chunk(const RandomKey& key, std::uint32_t position, std::uint32_t* words) {
  const WordTag d;
  const auto tagged = (static_cast<std::uint32_t>(key.stream) << 28) | (key.part & 0x0FFFFFFFu);
  for (std::int64_t b = 0; b < 16; b += word_lanes) {
    // `even` contains the counters of the even-numbered blocks, `odd` those of the odd-numbered
    // ones.
    const Words first =
        hn::Add(hn::Iota(d, 0), hn::Set(d, position + static_cast<std::uint32_t>(b)));
    Counters even{{first, hn::Set(d, static_cast<std::uint32_t>(key.index)),
                   hn::Set(d, static_cast<std::uint32_t>(key.index >> 32)), hn::Set(d, tagged)}};
    Counters odd = even;
    odd.c[0] = hn::Add(first, hn::Set(d, 1));
    auto key0 = static_cast<std::uint32_t>(key.seed),
         key1 = static_cast<std::uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
    for (int r = 0; r < 10; ++r, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      even.round(hn::Set(d, key0), hn::Set(d, key1));
      odd.round(hn::Set(d, key0), hn::Set(d, key1));
    }
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) {
      const auto shifted = hn::ShiftLeft<32>(hn::BitCast(LongTag(), odd.c[w]));
      hn::Store(hn::OddEven(hn::BitCast(d, shifted), even.c[w]), d, words + 16 * w + b);
    }
  }
}

/// The mask of the kept values among [e, e + lanes) of a chunk: those whose 16 bits are at least
/// the threshold. The caller has shifted the threshold to the upper half of a word.
HWY_INLINE Mask kept(const std::uint32_t* words, std::int64_t e, std::uint32_t threshold) {
  // lanes divides 16 and e is a multiple of lanes, so all values of a vector use the same half of
  // their words.
  using BitsTag = hn::Rebind<std::uint32_t, Tag>;
  const BitsTag d;
  auto bits = hn::LoadU(d, words + e / 32 * 16 + e % 16);
  if (e / 16 % 2 == 0) bits = hn::ShiftLeft<16>(bits);
  const auto drop = hn::Lt(bits, hn::Set(d, threshold));
#ifdef HEED_DOUBLE
  const hn::Rebind<std::int64_t, Tag> wide;
  const auto as_lanes =
      hn::PromoteTo(wide, hn::BitCast(hn::Rebind<std::int32_t, Tag>(), hn::VecFromMask(d, drop)));
  return hn::Not(hn::RebindMask(Tag(), hn::MaskFromVec(as_lanes)));
#else
  return hn::Not(hn::RebindMask(Tag(), drop));
#endif
}

/// Calls body(i, io, mask) for each vector of n values (`each` in lanes-inl.h); `mask` selects the
/// values that are kept. Requires 0 < threshold < 65536.
template <class Body>
HWY_INLINE void each_kept(const RandomKey& key, std::int64_t first, std::uint32_t threshold,
                          std::int64_t n, const Body& body) {
  HWY_ALIGN std::uint32_t words[64];
  for (std::int64_t start = 0; start < n; start += chunk) {
    philox_chunk(key, static_cast<std::uint32_t>((first + start) / 8), words);
    const std::int64_t size = std::min(n - start, chunk);
    if (size == chunk) {
#pragma GCC unroll 8
      for (std::int64_t e = 0; e < chunk; e += lanes) {
        body(start + e, Whole<Tag>(), kept(words, e, threshold << 16));
      }
    } else {
      each(size, [=, &words](std::int64_t e, auto io)
                     HWY_ATTR { body(start + e, io, kept(words, e, threshold << 16)); });
    }
  }
}

void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n) {
  const std::uint32_t threshold = plain::drop_threshold(p);
  if (threshold == 0 && x != y) std::copy_n(x, n, y);
  if (threshold == 65536) std::fill_n(y, n, real(0));
  if (threshold == 0 || threshold == 65536) return;
  const Vector factor = set(static_cast<real>(65536.0 / (65536.0 - threshold)));
  each_kept(key, first, threshold, n, [=](std::int64_t i, auto io, Mask keep) HWY_ATTR {
    io.store(hn::IfThenElseZero(keep, hn::Mul(io.load(x + i), factor)), y + i);
  });
}

void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n) {
  const std::uint32_t threshold = plain::drop_threshold(p);
  if (threshold == 65536 && r != y) std::copy_n(r, n, y);
  if (threshold == 65536) return;
  const Vector factor = set(static_cast<real>(65536.0 / (65536.0 - threshold)));
  if (threshold == 0) {
    return each(n, [=](std::int64_t i, auto io)
                       HWY_ATTR { io.store(hn::Add(io.load(x + i), io.load(r + i)), y + i); });
  }
  each_kept(key, first, threshold, n, [=](std::int64_t i, auto io, Mask keep) HWY_ATTR {
    const Vector rest = io.load(r + i);
    io.store(hn::IfThenElse(keep, hn::MulAdd(io.load(x + i), factor, rest), rest), y + i);
  });
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

real dropout_factor(real p) { return plain::dropout_factor(p); }

HWY_EXPORT(dropout);
HWY_EXPORT(dropout_add);

void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(dropout)(key, first, p, x, y, n);
}
void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(dropout_add)(key, first, p, x, r, y, n);
}

}  // namespace kernels
HEED_END
#endif
