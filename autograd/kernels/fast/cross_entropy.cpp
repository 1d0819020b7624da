#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"
#include "autograd/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/cross_entropy.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

struct RowSums {
  double rest = 0;     ///< Σ exp(x_j − m) without the first maximum
  double deficit = 0;  ///< Σ (m − x_j)
};

/// Adds the sums over n values of a row, in blocks; `deficit` only if `smooth`. If `keep`, x
/// becomes exp(x − m).
HWY_INLINE void add_sums(RowSums& sums, real* x, real m, std::int64_t n, bool smooth, bool keep) {
  HWY_ALIGN real buffer[exp_block];
  for (std::int64_t at = 0; at < n; at += exp_block) {
    real* block = x + at;
    const std::int64_t size = std::min(n - at, exp_block);
    if (smooth) {
      sums.deficit += wide_sum(size, [=](std::int64_t i, auto io) HWY_ATTR {
        return hn::Sub(set_wide(m), io.load(block + i));
      });
    }
    sums.rest += exp_of_block(block, m, keep ? block : buffer, size);
  }
}

/// Three passes: the largest logit, the sums, the gradient. The first maximum is excluded from the
/// sum of exponentials, because its term of 1 would swamp the rest, which determines a loss near 0.
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad) {
  const real m = row_max(logits, n);
  if (!std::isfinite(m)) {  // infinite or NaN: rare, so left to the reference
    return plain::cross_entropy_row(logits, n, target, smoothing, scale, with_grad);
  }
  const std::int64_t largest = find_first(logits, m, n);
  const double x_target = logits[target], eps = smoothing, share = eps / static_cast<double>(n);
  const bool smooth = smoothing > 0;
  RowSums sums;
  add_sums(sums, logits, m, largest, smooth, with_grad);
  add_sums(sums, logits + largest + 1, m, n - largest - 1, smooth, with_grad);

  RowLoss result{};
  const double log_total = std::log1p(sums.rest);
  result.nll = (m - x_target) + log_total;
  result.loss = (1 - eps) * result.nll;
  if (smooth) result.loss += share * sums.deficit + eps * log_total;
  result.correct = largest == target && !std::isnan(sums.rest);
  if (!with_grad) return result;

  const double total = 1 + sums.rest;
  const double p_target = logits[target] / total;  // valid only if target ≠ largest
  const Vector factor = set(static_cast<real>(scale / total)),
               shift = set(static_cast<real>(scale * share));
  each(n, [=](std::int64_t j, auto io)
              HWY_ATTR { io.store(hn::MulSub(io.load(logits + j), factor, shift), logits + j); });
  logits[largest] = static_cast<real>(scale * (1 / total - share));
  // If the target is the largest, −rest / total computes p − 1 without cancellation.
  const double error = largest == target ? eps - sums.rest / total : p_target - (1 - eps);
  logits[target] = static_cast<real>(scale * (error - share));
  return result;
}

double symmetric_kl_row(real* log_p, real* log_q, std::int64_t n, real scale, bool with_grad) {
  HWY_ALIGN real p[exp_block], q[exp_block];
  const auto exponentials = [&](std::int64_t at, std::int64_t size) HWY_ATTR {
    each(size, [=, &p, &q](std::int64_t j, auto io) HWY_ATTR {
      io.store(exp_negative(io.load(log_p + at + j), set(0)), p + j);
      io.store(exp_negative(io.load(log_q + at + j), set(0)), q + j);
    });
  };
  double a = 0, b = 0;
  for (std::int64_t at = 0; at < n; at += exp_block) {
    const std::int64_t size = std::min(n - at, exp_block);
    exponentials(at, size);
    const auto [pd, qd] = wide_sums<2>(size, [&](std::int64_t j, auto io, Wide(&v)[2]) HWY_ATTR {
      const Wide d = hn::Sub(io.load(log_p + at + j), io.load(log_q + at + j));
      v[0] = hn::Mul(io.load(p + j), d);
      v[1] = hn::Mul(io.load(q + j), d);
    });
    a += pd;
    b -= qd;
  }
  for (std::int64_t at = 0; with_grad && at < n; at += exp_block) {
    const std::int64_t size = std::min(n - at, exp_block);
    exponentials(at, size);
    each(size, [=, &p, &q](std::int64_t j, auto io) HWY_ATTR {
      const Vector pj = io.load(p + j), qj = io.load(q + j), factor = set(scale),
                   d = hn::Sub(io.load(log_p + at + j), io.load(log_q + at + j)),
                   pq = hn::Sub(pj, qj);
      const Vector dp = hn::MulAdd(pj, hn::Sub(d, set(static_cast<real>(a))), pq),
                   dq = hn::MulAdd(qj, hn::Add(d, set(static_cast<real>(b))), pq);
      io.store(hn::Mul(factor, dp), log_p + at + j);
      io.store(hn::Neg(hn::Mul(factor, dq)), log_q + at + j);
    });
  }
  return a + b;
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(cross_entropy_row);
HWY_EXPORT(symmetric_kl_row);

RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad) {
  return HWY_DYNAMIC_DISPATCH(cross_entropy_row)(logits, n, target, smoothing, scale, with_grad);
}
double symmetric_kl_row(real* log_p, real* log_q, std::int64_t n, real scale, bool with_grad) {
  return HWY_DYNAMIC_DISPATCH(symmetric_kl_row)(log_p, log_q, n, scale, with_grad);
}

}  // namespace kernels
HEED_END
#endif
