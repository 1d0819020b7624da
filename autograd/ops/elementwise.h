#pragma once
/// Elementwise functions.
#include "autograd/kernels/unary_functions.h"
#include "autograd/tensor.h"

HEED_BEGIN

Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       ///< x Φ(x), exact
Tensor gelu_tanh(const Tensor& x);  ///< approximation of gelu by tanh
Tensor sigmoid(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x);  ///< ln(1 + eˣ)
Tensor abs(const Tensor& x);       ///< gradient 0 at 0
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor pow(const Tensor& x, real exponent);
/// x limited to [low, high]; outside this interval the gradient is 0.
Tensor clamp(const Tensor& x, real low, real high);
/// f(a) ⊙ b, where a and b are the two halves of x along the last axis: [..., 2 n] → [..., n].
Tensor gated(UnaryFunction f, const Tensor& x);

HEED_END
