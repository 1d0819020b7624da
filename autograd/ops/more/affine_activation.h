#pragma once
/// x Wᵀ + b with a fused activation and dropout.
#include "autograd/base/random.h"
#include "autograd/kernels/unary_functions.h"
#include "autograd/ops/basic.h"

HEED_BEGIN

/// dropout(f(x Wᵀ + b)) as one fused op, which makes fewer passes over the values than separate
/// ops. For relu with dropout, it also saves fewer values for backward: besides x and weight, only
/// the result.
Tensor affine_activation(UnaryFunction f, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         real p = 0, const RandomKey& key = {});

[[deprecated("use affine_activation")]] inline Tensor affine_map(UnaryFunction f, const Tensor& x,
                                                                 const Tensor& weight,
                                                                 const Tensor& bias, real p = 0,
                                                                 const RandomKey& key = {}) {
  return affine_activation(f, x, weight, bias, p, key);
}

HEED_END
