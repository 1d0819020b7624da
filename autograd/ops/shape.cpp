#include "autograd/ops/basic.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/check.h"

// These ops move values and compute nothing: their Jacobians consist of zeros and ones, and each
// gradient returns to the source of its value.

HEED_BEGIN

namespace {

/// y[i] = x[i], where i counts all values in order. x and y share memory.
/// dx[i] = dy[i]
struct Reshape {
  Shape shape;
  Array forward(const Array& x) {
    require_defined("reshape", x);
    return x.reshaped(shape);
  }
  void backward(const Array& dy, Grad dx) const { dx.add(dy.reshaped(dx.shape())); }
};

/// Exchanges axes a ≤ b of x = [outer, A, mid, B, inner]; runs of `inner` values are contiguous.
Array swap_axes(const Array& x, int a, int b) {
  const Shape& shape = x.shape();
  const std::int64_t na = shape[a], nb = shape[b];
  const std::int64_t outer = shape.size(0, a), mid = shape.size(a + 1, b),
                     inner = shape.size(b + 1, shape.rank());
  Shape swapped;  // built from scratch: changing one extent at a time could overflow the size
  for (int i = 0; i < shape.rank(); ++i) swapped.push_back(i == a ? nb : i == b ? na : shape[i]);
  if (a == b || x.size() == 0 || (mid == 1 && (na == 1 || nb == 1))) return x.reshaped(swapped);
  Array y(swapped);
  constexpr std::int64_t tile = 16;  // values of one column remain in the cache for the next
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t m = 0; m < mid; ++m) {
      const real* from = x.data() + (o * na * mid + m) * nb * inner;
      real* to = y.data() + (o * nb * mid + m) * na * inner;
      for (std::int64_t i0 = 0; i0 < na; i0 += tile) {
        for (std::int64_t j0 = 0; j0 < nb; j0 += tile) {
          for (std::int64_t j = j0; j < std::min(j0 + tile, nb); ++j) {
            for (std::int64_t i = i0; i < std::min(i0 + tile, na); ++i) {
              std::copy_n(from + (i * mid * nb + j) * inner, inner,
                          to + (j * mid * na + i) * inner);
            }
          }
        }
      }
    }
  }
  return y;
}

/// y[…, j, …, i, …] = x[…, i, …, j, …]
/// dx = dy with the axes exchanged back
struct Transpose {
  int axis_a = 0, axis_b = 0;  // axis_a <= axis_b
  Array forward(const Array& x) { return swap_axes(x, axis_a, axis_b); }
  void backward(const Array& dy, Grad dx) const { dx.add(swap_axes(dy, axis_a, axis_b)); }
};

/// y[o, i, …] = x[o, begin + i, …]       x: [outer, n, inner], y: [outer, end − begin, inner]
/// dx[o, begin + i, …] = dy[o, i, …]; all other values are zero
/// If outer = 1, as for the first axis, nothing is copied: x and y share memory.
struct Slice {
  int axis = 0;
  std::int64_t begin = 0, end = 0;
  Array forward(const Array& x) {
    const Shape& shape = x.shape();
    const std::int64_t outer = shape.size(0, axis), inner = shape.size(axis + 1, shape.rank());
    if (outer == 1)
      return x.reshaped({shape[axis], inner})
          .sliced(begin, end)
          .reshaped(shape.with(axis, end - begin));
    Array y(shape.with(axis, end - begin));
    if (y.size() == 0) return y;
    const std::int64_t taken = (end - begin) * inner;
    for (std::int64_t o = 0; o < outer; ++o) {
      std::copy_n(x.data() + (o * shape[axis] + begin) * inner, taken, y.data() + o * taken);
    }
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    const Shape& shape = dx.shape();
    if (dy.shape() == shape) return dx.add(dy);
    const std::int64_t outer = shape.size(0, axis), inner = shape.size(axis + 1, shape.rank());
    const std::int64_t taken = (end - begin) * inner;
    Array& sum = dx.sum();
    if (dy.size() == 0) return;
    for (std::int64_t o = 0; o < outer; ++o) {
      real* to = sum.data() + (o * shape[axis] + begin) * inner;
      kernels::add(to, dy.data() + o * taken, to, taken);
    }
  }
};

}  // namespace

Tensor Tensor::operator[](std::int64_t i) const {
  if (!defined() || shape().rank() == 0)
    fail("[index] expected a tensor with at least one axis, got {}",
         defined() ? shape().str() : "an undefined one");
  const std::int64_t n = shape()[0];
  if (i < -n || i >= n) fail("[index] index {} is out of range for axis 0 of shape {}", i, shape());
  const std::int64_t at = i < 0 ? i + n : i;
  return reshape(slice(*this, 0, at, at + 1), Shape(shape().extents().subspan(1)));
}

Tensor reshape(const Tensor& x, const Shape& shape) { return apply(Reshape{shape}, x); }

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  require_defined("transpose", x.value());
  const int a = require_axis("transpose", x.shape(), axis_a),
            b = require_axis("transpose", x.shape(), axis_b);
  return apply(Transpose{std::min(a, b), std::max(a, b)}, x);
}

Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  require_defined("slice", x.value());
  axis = require_axis("slice", x.shape(), axis);
  if (begin < 0 || end < begin || end > x.shape()[axis]) {
    fail("[slice] expected a range within [0, {}) on axis {} of {}, got [{}, {})", x.shape()[axis],
         axis, x.shape(), begin, end);
  }
  return apply(Slice{axis, begin, end}, x);
}

HEED_END
