#include "autograd/kernels/fast/update.h"

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/update.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// A sum of 0 · w is 0 if all weights are finite, and NaN otherwise.
HWY_INLINE bool all_numbers(Vector watch) { return hn::AllTrue(Tag(), hn::Eq(watch, watch)); }

bool adam(const AdamStep& step, const real* g, real* w, real* m, real* v, std::int64_t n) {
  const auto constant = [](double value) HWY_ATTR { return set(static_cast<real>(value)); };
  const Vector beta1 = constant(step.beta1), rest1 = constant(1 - step.beta1);
  const Vector beta2 = constant(step.beta2), rest2 = constant(1 - step.beta2);
  const Vector clip = constant(step.grad_scale), eps = constant(step.eps);
  const Vector keep = constant(1 - step.lr * step.decay), rate = constant(step.lr / step.c1);
  const Vector root2 = constant(1 / std::sqrt(step.c2));
  Vector watch = set(0);
  each(n, [=, &watch](std::int64_t i, auto io) HWY_ATTR {
    const Vector wi = io.load(w + i);
    watch = hn::MulAdd(wi, set(0), watch);
    const Vector gi = hn::Mul(io.load(g + i), clip);
    const Vector mi = hn::MulAdd(beta1, io.load(m + i), hn::Mul(rest1, gi));
    const Vector vi = hn::MulAdd(beta2, io.load(v + i), hn::Mul(rest2, hn::Mul(gi, gi)));
    const Vector size = hn::MulAdd(hn::Sqrt(vi), root2, eps);
    const Vector update = hn::Div(hn::Mul(rate, mi), size);
    io.store(mi, m + i);
    io.store(vi, v + i);
    io.store(hn::MulSub(wi, keep, update), w + i);
  });
  return all_numbers(watch);
}

bool sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w, real* b,
         std::int64_t n) {
  Vector watch = set(0);
  each(n, [=, &watch](std::int64_t i, auto io) HWY_ATTR {
    const Vector wi = io.load(w + i);
    watch = hn::MulAdd(wi, set(0), watch);
    const Vector step = hn::MulAdd(io.load(g + i), set(grad_scale), hn::Mul(set(decay), wi));
    const Vector bi = hn::MulAdd(set(momentum), io.load(b + i), step);
    io.store(bi, b + i);
    io.store(hn::NegMulAdd(set(lr), bi, wi), w + i);
  });
  return all_numbers(watch);
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(adam);
HWY_EXPORT(sgd);

bool adam(const AdamStep& step, const real* g, real* w, real* m, real* v, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(adam)(step, g, w, m, v, n);
}
bool sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w, real* b,
         std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sgd)(lr, momentum, decay, grad_scale, g, w, b, n);
}

}  // namespace kernels
HEED_END
#endif
