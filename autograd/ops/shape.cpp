#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/check.h"

// These ops move values and compute nothing: their Jacobians are made of zeros and ones, and each
// gradient goes back to where its value came from.

HEED_BEGIN

namespace {

std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape[i];
  return n;
}

/// y[i] = x[i], i counting through all values in order. x and y share them.
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
  const std::int64_t outer = product(shape, 0, a), mid = product(shape, a + 1, b),
                     inner = product(shape, b + 1, shape.rank());
  Shape swapped;  // both at once: with only one axis changed it might be too large
  for (int i = 0; i < shape.rank(); ++i) swapped.push_back(i == a ? nb : i == b ? na : shape[i]);
  if (a == b || x.size() == 0 || (mid == 1 && (na == 1 || nb == 1))) return x.reshaped(swapped);
  Array y(swapped);
  constexpr std::int64_t tile =
      16;  // so that what is read for one column is still in the cache for the next
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
/// dx[o, begin + i, …] = dy[o, i, …], zero elsewhere
/// Rows of the first axis are not copied: x and y share them.
struct Slice {
  int axis = 0;
  std::int64_t begin = 0, end = 0;
  Array forward(const Array& x) {
    const Shape& shape = x.shape();
    const std::int64_t outer = product(shape, 0, axis),
                       inner = product(shape, axis + 1, shape.rank());
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
    const std::int64_t outer = product(shape, 0, axis),
                       inner = product(shape, axis + 1, shape.rank());
    const std::int64_t taken = (end - begin) * inner;
    Array& sum = dx.sum();
    if (dy.size() == 0) return;
    for (std::int64_t o = 0; o < outer; ++o) {
      real* to = sum.data() + (o * shape[axis] + begin) * inner;
      kernels::add(to, dy.data() + o * taken, to, taken);
    }
  }
};

/// y = the parts end to end along one axis    parts: [outer, n_k, inner] → y: [outer, Σ n_k, inner]
/// dx_k = the slice of dy that came from part k
struct Concat {
  int axis = 0;
  std::vector<std::int64_t, ArenaAllocator<std::int64_t>> extents;  // n_k
  Array forward(std::span<const Array> parts) {
    std::int64_t total = 0;
    for (const Array& part : parts) {
      extents.push_back(part.shape()[axis]);
      total += extents.back();
    }
    Array y(parts[0].shape().with(axis, total));
    if (y.size() == 0) return y;
    const std::int64_t outer = product(y.shape(), 0, axis),
                       inner = product(y.shape(), axis + 1, y.shape().rank());
    std::int64_t begin = 0;
    for (const Array& part : parts) {
      const std::int64_t n = part.shape()[axis];
      for (std::int64_t o = 0; o < outer; ++o) {
        std::copy_n(part.data() + o * n * inner, n * inner, y.data() + (o * total + begin) * inner);
      }
      begin += n;
    }
    return y;
  }
  void backward(const Array& dy, std::span<const Grad> dx) const {
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < dx.size(); ++k) {
      if (dx[k]) dx[k].add(Slice{axis, begin, begin + extents[k]}.forward(dy));
      begin += extents[k];
    }
  }
};

}  // namespace

Tensor Tensor::operator[](std::int64_t i) const {
  if (!defined() || shape().rank() == 0)
    fail("[index] expected a tensor with at least one axis, got {}",
         defined() ? shape().str() : "an undefined one");
  const std::int64_t n = shape()[0];
  if (i < -n || i >= n) fail("[index] {} lies outside of axis 0 of {}", i, shape());
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

Tensor concat(std::span<const Tensor> parts, int axis) {
  if (parts.empty()) fail("[concat] expected at least one tensor, got none");
  for (const Tensor& part : parts) require_defined("concat", part.value());
  const Shape& first = parts[0].shape();
  axis = require_axis("concat", first, axis);
  for (const Tensor& part : parts) {
    if (part.shape().rank() != first.rank() || part.shape().with(axis, first[axis]) != first) {
      fail("[concat] expected shapes like {} on every axis but {}, got {}", first, axis,
           part.shape());
    }
  }
  return apply(Concat{axis, {}}, parts);
}

HEED_END
