#pragma once
/// x Wᵀ + b, with or without a fused activation and dropout.
#include <cstdint>

#include "autograd/base/random.h"
#include "autograd/kernels/unary_functions.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// x: [..., in], weight: [out, in], bias: [out] or undefined → [..., out]: x Wᵀ + b.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// affine with rows [begin, end) of weight and bias only, so that q, k and v can share one matrix:
/// [..., in] → [..., end − begin].
Tensor affine_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t begin,
                   std::int64_t end);

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

// ---- shared code -----------------------------------------------------------------------------

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
