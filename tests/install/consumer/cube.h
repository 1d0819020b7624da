#pragma once
/// An op of one's own.
#include "autograd/tensor.h"

HEED_BEGIN

/// y_i = x_i³        dx_i = 3 x_i² dy_i        any shape
struct Cube {
  Array x;
  Array forward(const Array& input) {
    x = input;
    Array y(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i] * x.data()[i] * x.data()[i];
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) g.data()[i] = 3 * x.data()[i] * x.data()[i] * dy.data()[i];
    dx.add(g);
  }
};

inline Tensor cube(const Tensor& x) { return apply(Cube{}, x); }

HEED_END
