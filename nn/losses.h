#pragma once
/// The mean squared error. The losses for classification and token prediction are ops
/// (cross_entropy.h).
#include "autograd/ops/basic.h"
#include "autograd/ops/more/reduce.h"

HEED_BEGIN

/// mean((x − target)²). The shapes must be equal: with broadcasting, x [n, 1] and a target [n]
/// would give differences [n, n].
inline Tensor mean_squared_error(const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape())
    fail("[mean_squared_error] expected a target of x's shape {}, got {}", x.shape(),
         target.shape());
  const Tensor error = x - target;
  return mean(error * error);
}

HEED_END
