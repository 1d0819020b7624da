#pragma once
/// Optimizer updates of n values.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// Adam, Algorithm 1 of Kingma and Ba 2015, and AdamW (Loshchilov and Hutter 2019):
///   m = β1 m + (1 − β1) g,  v = β2 v + (1 − β2) g²,
///   w = w (1 − lr·decay) − lr (m / c1) / (√(v / c2) + eps),   c1 = 1 − β1^t, c2 = 1 − β2^t.
/// The constants are double, because 1 − β2 with a float β2 = 0.999 is wrong in its fifth digit.
struct AdamStep {
  double lr, beta1, beta2, eps, decay, c1, c2;
  double grad_scale;  ///< factor applied to g first (clipping)
};
/// Returns whether all weights were finite before the update, as does sgd. The loss may conceal a
/// weight that is not finite, such as −inf before a relu.
bool adam(const AdamStep& step, const real* g, real* w, real* m, real* v, std::int64_t n);
/// SGD with momentum as in PyTorch: g' = grad_scale g + decay w, b = momentum b + g', w −= lr b.
bool sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w, real* b,
         std::int64_t n);

}  // namespace kernels
HEED_END
