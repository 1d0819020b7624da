#pragma once
/// What affine and the ops fused with it share.
#include "autograd/ops.h"

HEED_BEGIN

/// Rows [begin, end) of a weight [out, in] and a bias [out] (or none), applied to rows x.
struct AffineRows {
  std::int64_t begin = 0, end = 0;
  Array x, weight;
  bool has_bias = false;

  std::int64_t in() const { return weight.shape()[1]; }
  std::int64_t out() const { return end - begin; }
  std::int64_t rows() const { return x.shape().rows(); }

  /// Checks the shapes, keeps x and weight, and returns x Wᵀ without the bias: [..., end − begin].
  Array product(const char* op, const Array& x, const Array& weight, const Array& bias);
  /// Adds those gradients of the three that are needed; dy: [..., end − begin].
  void backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const;
};

HEED_END
