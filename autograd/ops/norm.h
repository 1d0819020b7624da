#pragma once
/// Normalisation over the last axis.
#include "autograd/tensor.h"

HEED_BEGIN

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5));
Tensor rms_norm(const Tensor& x, const Tensor& gain, real eps = real(1e-5));

HEED_END
