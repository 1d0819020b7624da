#pragma once
/// Dropout (Srivastava et al. 2014).
#include "autograd/base/random.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// Zeroes each value with probability p, rounded to a multiple of 2⁻¹⁶, and scales the rest by
/// 1/(1 − p). If p = 0, returns x itself.
Tensor dropout(const Tensor& x, real p, const RandomKey& key);
/// residual + dropout(x) as one fused op; x and residual have equal shapes.
Tensor dropout_add(const Tensor& x, const Tensor& residual, real p, const RandomKey& key);

HEED_END
