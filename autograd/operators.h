#pragma once
/// Arithmetic as it is written: x + y, 2 * x, -x, with the broadcasting of add, sub, mul and div. Part
/// of ops.h.
#include "autograd/ops.h"

HEED_BEGIN

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
