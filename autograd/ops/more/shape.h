#pragma once
/// More ops that move values and compute nothing.
#include "autograd/ops/basic.h"

HEED_BEGIN

/// The concatenation of the parts along an axis.
Tensor concat(std::span<const Tensor> parts, int axis);
Tensor concat(std::initializer_list<Tensor> parts, int axis);
/// Tensors of equal shape, joined along a new axis.
Tensor stack(std::span<const Tensor> parts, int axis = 0);
Tensor stack(std::initializer_list<Tensor> parts, int axis = 0);
/// Axis k of the result is axis axes[k] of x: permute(x, {1, 0}) transposes a matrix.
Tensor permute(const Tensor& x, std::span<const int> axes);
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
/// x repeated along axes that are missing or have extent 1.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Slices of equal size along an axis, whose extent must be divisible by `parts`.
std::vector<Tensor> split(const Tensor& x, std::int64_t parts, int axis);

HEED_END
