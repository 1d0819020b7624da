/// Functions shared by softmax, log-sum-exp and cross-entropy: the largest value m of a row and the
/// sum of exp(x − m).
#if defined(HEED_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SOFTMAX_INL_H_
#undef HEED_KERNELS_SOFTMAX_INL_H_
#else
#define HEED_KERNELS_SOFTMAX_INL_H_
#endif

#include <cmath>

#include "autograd/kernels/fast/simd/exp-inl.h"

#if HEED_SIMD
HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {

/// The largest value. If some are NaN, the result may be any of the values or -inf: callers leave a
/// result that is not finite to the reference implementation; otherwise, the sum of exponentials is
/// NaN.
HWY_INLINE real row_max(const real* x, std::int64_t n) {
  constexpr real low = -std::numeric_limits<real>::infinity();
  Vector m0 = set(low), m1 = m0, m2 = m0, m3 = m0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(Tag(), x + i));
    m1 = hn::Max(m1, hn::LoadU(Tag(), x + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(Tag(), x + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(Tag(), x + i + 3 * lanes));
  }
  each(n - i,
       [&](std::int64_t k, auto io) HWY_ATTR { m0 = hn::Max(m0, io.load_or(x + i + k, low)); });
  return hn::GetLane(hn::MaxOfLanes(Tag(), hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

constexpr std::int64_t exp_block = 1024;  // number of values; they fit in the L1 cache

/// y = exp(x − m) for one block of a row, with a finite m ≥ x; returns the sum. y may be x.
HWY_INLINE double exp_of_block(const real* x, real m, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(exp_difference(io.load(x + i), set(m)), y + i); });
  return wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR { return io.load(y + i); });
}
/// y = exp(x − m) for a whole row; returns the sum. If y is null, only the sum is computed.
HWY_INLINE double exp_of_row(const real* x, real m, real* y, std::int64_t n) {
  HWY_ALIGN real buffer[exp_block];
  double total = 0;
  for (std::int64_t i = 0; i < n; i += exp_block) {
    total += exp_of_block(x + i, m, y ? y + i : buffer, std::min(n - i, exp_block));
  }
  return total;
}

/// The index of the first value equal to m, or n.
HWY_INLINE std::int64_t find_first(const real* x, real m, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const std::intptr_t at = hn::FindFirstTrue(Tag(), hn::Eq(hn::LoadU(Tag(), x + i), set(m)));
    if (at >= 0) return i + at;
  }
  while (i < n && x[i] != m) ++i;
  return i;
}

/// log Σ exp(x), from the largest value m and `total`, the sum of exp(x − m) with terms rounded to
/// `real`. If the result is so close to 0 that the rounding errors would matter, the sum is
/// recomputed in double, without the first maximum, whose term is 1.
HWY_INLINE double log_total(const real* x, real m, double total, std::int64_t n) {
  const double result = m + std::log(total);
  const bool cancels = m < 0 && std::abs(result) * total < total - 1;
  const bool nearly_zero = total - 1 < 1e-7 && std::abs(result) < 1e-6;
  if (!cancels && !nearly_zero) return result;
  const std::int64_t largest = find_first(x, m, n);
  const auto sum_of = [=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    return wide_sum(end - begin, [=](std::int64_t i, auto io) HWY_ATTR {
      return exp_difference(io.load(x + begin + i), set_wide(m));
    });
  };
  return m + std::log1p(sum_of(0, largest) + sum_of(largest + 1, n));
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();
#endif  // HEED_SIMD
#endif  // guard
