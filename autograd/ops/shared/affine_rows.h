#pragma once
/// The matrix products that all ops of the form x Wᵀ + b share.
#include <cstdint>

#include "autograd/tensor.h"

HEED_BEGIN

/// x Wᵀ + b with rows [begin, end) of a weight [n, in] and of a bias [n], which may be undefined;
/// x: [..., in].
struct AffineRows {
  std::int64_t begin = 0, end = 0;
  Array x, weight;
  bool has_bias = false;

  std::int64_t in() const { return weight.shape()[1]; }
  std::int64_t out() const { return end - begin; }
  std::int64_t rows() const { return x.shape().rows(); }

  /// Checks the shapes, saves x and weight, and returns x Wᵀ without the bias: [..., end − begin].
  Array product(const char* op, const Array& x, const Array& weight, const Array& bias);
  /// Adds the required gradients of x, weight and bias; dy: [..., end − begin].
  void backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const;
};

HEED_END
