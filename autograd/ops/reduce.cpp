#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/broadcast.h"
#include "autograd/ops/check.h"

HEED_BEGIN

namespace {

/// y = factor · Σ_k x[…, k, …]          x: [outer, n, inner] → y: [outer, inner]
/// dx[…, k, …] = factor · dy            for every k: each x enters one sum, with weight `factor`
/// where k runs along one axis, or along all of them. sum: factor = 1; mean: factor = 1/n.
struct Reduce {
  Shape kept;  // x's shape with extent 1 where it was summed
  Shape result;
  real factor = 1;
  Array forward(const Array& x) {
    Array total = sum_to(x, kept).reshaped(result);
    if (factor == 1) return total;
    Array y(result);
    kernels::scale(factor, total.data(), y.data(), y.size());
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(kept);
    kernels::scale(factor, dy.data(), g.data(), dy.size());
    dx.add(broadcast_to(g, dx.shape()));
  }
};

Tensor reduce(const char* op, bool is_mean, const Tensor& x, int axis, bool keep_axis) {
  require_defined(op, x.value());
  const bool all = axis == all_axes;
  if (!all) axis = require_axis(op, x.shape(), axis);
  Shape kept, result;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const bool summed = all || i == axis;
    kept.push_back(summed ? 1 : x.shape()[i]);
    if (keep_axis || !summed) result.push_back(kept[i]);
  }
  real factor = 1;
  if (is_mean) {
    const std::int64_t n = all ? x.size() : x.shape()[axis];
    if (n == 0)
      fail("[mean] expected at least one value to take the mean of, got shape {}", x.shape());
    factor = real(1) / static_cast<real>(n);
  }
  return apply(Reduce{kept, result, factor}, x);
}

}  // namespace

Tensor sum(const Tensor& x, int axis, bool keep_axis) {
  return reduce("sum", false, x, axis, keep_axis);
}
Tensor mean(const Tensor& x, int axis, bool keep_axis) {
  return reduce("mean", true, x, axis, keep_axis);
}

HEED_END
