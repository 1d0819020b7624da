#pragma once
/// Elementwise arithmetic. Shapes broadcast as in NumPy.
#include "autograd/ops/elementwise.h"

HEED_BEGIN

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& x, real factor);  ///< factor · x
/// The larger and the smaller of two values, or NaN if either is NaN. Equal values each receive
/// half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// a where the condition is not 0, else b. All three broadcast.
Tensor where(const Array& condition, const Tensor& a, const Tensor& b);

/// Conditions, as constants: 1 where true, else 0.
Array greater(const Array& a, const Array& b);  ///< a > b
Array equal(const Array& a, const Array& b);    ///< a = b

// Operators: x + y, 2 * x, -x.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }

inline Tensor operator+(const Tensor& a, real b) { return add(a, Array::scalar(b)); }
inline Tensor operator-(const Tensor& a, real b) { return sub(a, Array::scalar(b)); }
inline Tensor operator*(const Tensor& a, real b) { return scale(a, b); }
inline Tensor operator/(const Tensor& a, real b) { return scale(a, 1 / b); }
inline Tensor operator+(real a, const Tensor& b) { return add(Array::scalar(a), b); }
inline Tensor operator-(real a, const Tensor& b) { return sub(Array::scalar(a), b); }
inline Tensor operator*(real a, const Tensor& b) { return scale(b, a); }
inline Tensor operator/(real a, const Tensor& b) { return div(Array::scalar(a), b); }

HEED_END
