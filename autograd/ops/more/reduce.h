#pragma once
/// Sums, extremes and other reductions along one axis or all axes, and prefix sums.
#include <limits>

#include "autograd/tensor.h"

HEED_BEGIN

inline constexpr int all_axes = std::numeric_limits<int>::max();

Tensor sum(const Tensor& x, int axis = all_axes, bool keep_axis = false);
Tensor mean(const Tensor& x, int axis = all_axes, bool keep_axis = false);
/// The largest and the smallest value, or NaN (without a gradient) if any value is NaN. Equal
/// extremes share the gradient evenly, as in torch.amax.
Tensor max(const Tensor& x, int axis = all_axes, bool keep_axis = false);
Tensor min(const Tensor& x, int axis = all_axes, bool keep_axis = false);
/// ln Σ eˣ, without overflow.
Tensor log_sum_exp(const Tensor& x, int axis = -1, bool keep_axis = false);
/// Prefix sums along an axis.
Tensor cumsum(const Tensor& x, int axis = -1);

HEED_END
