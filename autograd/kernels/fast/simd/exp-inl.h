/// e^x for vectors of float or double, to within 2 units in the last place. Denormal results are
/// not flushed to zero, and NaN remains NaN. Used by softmax, cross-entropy, and the functions exp,
/// sigmoid, silu, gelu and gelu_tanh.
#if defined(HEED_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_EXP_INL_H_
#undef HEED_KERNELS_EXP_INL_H_
#else
#define HEED_KERNELS_EXP_INL_H_
#endif

#include <limits>

#include "autograd/kernels/fast/simd/lanes-inl.h"

#if HEED_SIMD
HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {

/// c_0 + c_1 x + c_2 x² + … by Horner's rule.
template <class V, class T, std::size_t n>
HWY_INLINE V polynomial(V x, const T (&c)[n]) {
  const hn::DFromV<V> d;
  V y = hn::Set(d, c[n - 1]);
#pragma GCC unroll 32
  for (std::size_t k = 2; k <= n; ++k) y = hn::MulAdd(y, x, hn::Set(d, c[n - k]));
  return y;
}

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float log2e = 1.44269504F;
  static constexpr float ln2_high = 0.693147182F, ln2_low = -1.90465430e-9F;
  static constexpr float vanishes_below = -200;
  /// (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2: Chebyshev approximation, relative error of e^r 1.0e-8.
  static constexpr float terms[] = {0.5F, 0.1666657685F, 0.04166655444F, 0.008363202972F,
                                    0.001392621347F};
};
template <>
struct ExpConstants<double> {
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 0.6931471805599453, ln2_low = 2.3190468138462996e-17;
  static constexpr double vanishes_below = -1200;
  /// 1/2!, 1/3!, …, 1/13!: relative error of e^r 6e-18.
  static constexpr double terms[] = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
};

/// e^x as (1 + m) 2^n with m in [-0.3, 0.42] and n an integer, so that a factor can be applied
/// before e^x is rounded: `times` multiplies 1 + m by it, and times_power then multiplies by 2^n,
/// which may make the result denormal.
template <class V>
struct Power {
  V m, n;
  /// v (1 + m)
  HWY_INLINE V times(V v) const { return hn::MulAdd(v, m, v); }
  HWY_INLINE V one_plus_m() const { return hn::Add(hn::Set(hn::DFromV<V>(), 1), m); }
};

/// e^r − 1 for |r| ≤ ln 2 / 2
template <class V>
HWY_INLINE V exp_polynomial(V r) {
  return hn::MulAdd(hn::Mul(r, r), polynomial(r, ExpConstants<hn::TFromV<V>>::terms), r);
}

/// e^(x + rest), where `rest` is the part of an argument that x cannot represent: at most half a
/// unit in the last place of x. Without it, the relative error of e^x would be |x| times that of x.
template <class V>
HWY_INLINE Power<V> exp_power(V x, V rest) {
  const hn::DFromV<V> d;
  using C = ExpConstants<hn::TFromV<V>>;
  const V n = hn::Round(hn::Mul(x, hn::Set(d, C::log2e)));
  // Exact, because n ln2_high and x are multiples of the same small unit and their difference
  // has few bits.
  const V r = hn::NegMulAdd(n, hn::Set(d, C::ln2_high), x);
  return {exp_polynomial(hn::Add(r, hn::NegMulAdd(n, hn::Set(d, C::ln2_low), rest))), n};
}

/// An integer-valued n as integer lanes: the low bits of n + 1.5 · 2^23 (double: n + 1.5 · 2^52).
template <class V>
HWY_INLINE auto as_integer(V n) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr auto magic = 1.5F / std::numeric_limits<hn::TFromV<V>>::epsilon();
  const V m = hn::Set(d, static_cast<hn::TFromV<V>>(magic));
  return hn::Sub(hn::BitCast(di, hn::Add(n, m)), hn::BitCast(di, m));
}

/// v · 2^n for n ≤ 128 (1024 for double), rounded once unless v · 2^(n/2) is denormal; 0 for n far
/// below the exponent of any denormal, even if v is NaN because n is -inf.
template <class V>
HWY_INLINE V times_power(V v, V n) {
  const hn::DFromV<V> d;
  using T = hn::TFromV<V>;
  const auto vanishes = hn::Lt(n, hn::Set(d, ExpConstants<T>::vanishes_below));
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(V) == 64) {
    if constexpr (sizeof(T) == 4) {
      return hn::IfThenZeroElse(vanishes, V{_mm512_scalef_ps(v.raw, n.raw)});
    } else {
      return hn::IfThenZeroElse(vanishes, V{_mm512_scalef_pd(v.raw, n.raw)});
    }
  }
#endif
  // Two steps, because 2^n alone may not be a normal number. The first is exact unless its result
  // is denormal.
  const V half = hn::Round(hn::Mul(n, hn::Set(d, static_cast<T>(0.5))));
  const auto power = [&](V k) HWY_ATTR {
    constexpr int mantissa = std::numeric_limits<T>::digits - 1;
    const auto exponent = hn::ShiftLeft<mantissa>(as_integer(k));
    const hn::DFromV<decltype(exponent)> di;
    return hn::BitCast(d, hn::Add(hn::BitCast(di, hn::Set(d, 1)), exponent));
  };
  return hn::IfThenZeroElse(vanishes, hn::Mul(hn::Mul(v, power(half)), power(hn::Sub(n, half))));
}

/// e^(x + rest) for x ≤ 0; 0 for x = -inf.
template <class V>
HWY_INLINE V exp_negative(V x, V rest) {
  const Power<V> e = exp_power(x, rest);
  return times_power(e.one_plus_m(), e.n);
}

/// e^(x − m) for x ≤ m and finite m, accurate even if x − m must be rounded: the lost part comes
/// from the two-sum of Knuth (The Art of Computer Programming 2, 4.2.2).
template <class V>
HWY_INLINE V exp_difference(V x, V m) {
  const V s = hn::Sub(x, m);
  const V b = hn::Sub(s, x);  // the part of −m that s contains
  const V rest = hn::Sub(hn::Sub(x, hn::Sub(s, b)), hn::Add(m, b));
  return exp_negative(s, rest);
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();
#endif  // HEED_SIMD
#endif  // guard
