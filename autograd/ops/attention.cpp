#include <algorithm>
#include <cmath>

#include "autograd/ops/basic.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

/// weights = softmax(q kᵀ / √d + mask)    q: [..., Tq, d], k: [..., Tk, d], weights: [..., Tq, Tk]
/// output  = weights v                    v: [..., Tk, dv], output: [..., Tq, dv]
/// Composed of other ops, which supply its gradients; it stores the whole matrix of weights. The op
/// in more/attention/fused_attention.cpp, which does not save that matrix, is tested against this function.
/// Source: Vaswani et al., "Attention Is All You Need", 2017, equation 1.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const Array& mask) {
  for (const Tensor* x : {&q, &k, &v}) {
    require_defined("attention", x->value());
    if (x->shape().rank() < 2)
      fail("[attention] expected q, k and v of shape [..., T, d], got {}", x->shape());
  }
  if (q.shape()[-1] != k.shape()[-1]) {
    fail("[attention] expected q and k of the same width, got {} and {}", q.shape(), k.shape());
  }
  if (k.shape()[-2] != v.shape()[-2]) {
    fail("[attention] expected as many values as keys, got {} and {}", v.shape(), k.shape());
  }
  const auto width = static_cast<real>(std::max<std::int64_t>(q.shape()[-1], 1));
  const Tensor scores = scale(matmul(q, k, false, true), 1 / std::sqrt(width));
  const Tensor weights = softmax(scores, mask);
  return {matmul(weights, v), weights};
}

Array causal_mask(std::int64_t t) {
  if (t < 0) fail("[causal_mask] expected a length of at least 0, got {}", t);
  Array mask = Array::zeros({t, t});
  for (std::int64_t i = 0; i < t; ++i) {
    std::fill(mask.row(i) + i + 1, mask.row(i) + t, -std::numeric_limits<real>::infinity());
  }
  return mask;
}

HEED_END
