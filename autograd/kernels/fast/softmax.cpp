#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"
#include "autograd/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/softmax.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// Rows whose largest value is infinite or NaN are rare. They are left to the reference
// implementation, which is simpler.

real log_sum_exp_row(const real* x, std::int64_t n) {
  const real m = row_max(x, n);
  if (!std::isfinite(m)) return plain::log_sum_exp_row(x, n);
  return static_cast<real>(log_total(x, m, exp_of_row(x, m, nullptr, n), n));
}

real softmax_row(const real* x, real* y, std::int64_t n) {
  const real m = row_max(x, n);
  if (!std::isfinite(m)) return plain::softmax_row(x, y, n);
  // If m and log(total) may cancel, log Σ exp(x) is computed first, because y may be x: exp_of_row
  // then overwrites x.
  const bool may_cancel = m < real(1e-6) && m > -std::log(static_cast<real>(n)) - 1;
  const real careful = may_cancel ? log_sum_exp_row(x, n) : real(0);
  const double total = exp_of_row(x, m, y, n);
  const real result = may_cancel ? careful : static_cast<real>(m + std::log(total));
  const Vector factor = set(static_cast<real>(1 / total));
  each(n,
       [=](std::int64_t i, auto io) HWY_ATTR { io.store(hn::Mul(io.load(y + i), factor), y + i); });
  return result;
}

void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  const double inner = wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR {
    return hn::Mul(io.load(y + i), io.load(dy + i));
  });
  each_wide(n, [=](std::int64_t i, auto io) HWY_ATTR {
    io.store(hn::Mul(io.load(y + i), hn::Sub(io.load(dy + i), set_wide(inner))), dx + i);
  });
}

/// x − m and −log Σ exp(x − m) are both at most 0, so their sum does not cancel.
void log_softmax_row(const real* x, real* y, std::int64_t n) {
  const real m = row_max(x, n);
  if (!std::isfinite(m)) return plain::log_softmax_row(x, y, n);
  const std::int64_t largest = find_first(x, m, n);
  const double log_total = std::log1p(exp_of_row(x, m, nullptr, largest) +
                                      exp_of_row(x + largest + 1, m, nullptr, n - largest - 1));
  each_wide(n, [=](std::int64_t i, auto io) HWY_ATTR {
    const Wide below = hn::Sub(io.load(x + i), set_wide(m));
    io.store(hn::Sub(below, set_wide(log_total)), y + i);
  });
}

void log_softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  const Wide masked = set_wide(-std::numeric_limits<double>::infinity());
  const double total = wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR {
    return hn::IfThenZeroElse(hn::Eq(io.load(y + i), masked), io.load(dy + i));
  });
  each_wide(n, [=](std::int64_t i, auto io) HWY_ATTR {
    const Wide log_p = io.load(y + i);
    const Wide p = exp_negative(log_p, hn::Zero(WideTag()));
    const Wide g = hn::NegMulAdd(p, set_wide(total), io.load(dy + i));
    io.store(hn::IfThenZeroElse(hn::Eq(log_p, masked), g), dx + i);
  });
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(softmax_row);
HWY_EXPORT(log_sum_exp_row);
HWY_EXPORT(softmax_row_grad);
HWY_EXPORT(log_softmax_row);
HWY_EXPORT(log_softmax_row_grad);

real softmax_row(const real* x, real* y, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(softmax_row)(x, y, n);
}
real log_sum_exp_row(const real* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(log_sum_exp_row)(x, n);
}
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(softmax_row_grad)(y, dy, dx, n);
}
void log_softmax_row(const real* x, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(log_softmax_row)(x, y, n);
}
void log_softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(log_softmax_row_grad)(y, dy, dx, n);
}

}  // namespace kernels
HEED_END
#endif
