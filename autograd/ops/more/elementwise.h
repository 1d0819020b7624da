#pragma once
/// More elementwise functions and arithmetic. Shapes broadcast as in NumPy.
#include "autograd/kernels/fast/unary_names.h"
#include "autograd/ops/basic.h"

HEED_BEGIN

Tensor softplus(const Tensor& x);  ///< ln(1 + eˣ)
Tensor abs(const Tensor& x);       ///< gradient 0 at 0
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor pow(const Tensor& x, real exponent);
/// x limited to [low, high]; outside this interval the gradient is 0.
Tensor clamp(const Tensor& x, real low, real high);
/// f(a) ⊙ b, where a and b are the two halves of x along the last axis: [..., 2 n] → [..., n].
Tensor gated(UnaryFunction f, const Tensor& x);

/// The larger and the smaller of two values, or NaN if either is NaN. Equal values each receive
/// half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// a where the condition is not 0, else b. All three broadcast.
Tensor where(const Array& condition, const Tensor& a, const Tensor& b);

/// Conditions, as constants: 1 where true, else 0.
Array greater(const Array& a, const Array& b);  ///< a > b
Array equal(const Array& a, const Array& b);    ///< a = b

HEED_END
