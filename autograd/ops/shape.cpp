#include "autograd/ops/shape.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/axis.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"
#include "autograd/tape/many.h"

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
  const std::int64_t outer = product(shape, 0, a), mid = product(shape, a + 1, b),
                     inner = product(shape, b + 1, shape.rank());
  Shape swapped;  // built from scratch: changing one extent at a time could overflow the size
  for (int i = 0; i < shape.rank(); ++i) swapped.push_back(i == a ? nb : i == b ? na : shape[i]);
  if (a == b || x.size() == 0 || (mid == 1 && (na == 1 || nb == 1))) return x.reshaped(swapped);
  Array y(swapped);
  constexpr std::int64_t tile = 16;  // values read for one column remain in the cache for the next
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

/// y = the concatenation of the parts along one axis
///                                       parts: [outer, n_k, inner] → y: [outer, Σ n_k, inner]
/// dx_k = the slice of dy for part k
struct Concat {
  int axis = 0;
  std::vector<std::int64_t, BlockAllocator<std::int64_t>> extents;  // n_k
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

using Axes = std::array<int, Shape::max_rank>;

/// Axis k of y is axis axes[k] of x.
Array permuted(const Array& x, const Axes& axes) {
  const Shape& from = x.shape();
  const int rank = from.rank();
  Shape shape;
  // The stride in x and the current index along each axis of y.
  std::array<std::int64_t, Shape::max_rank> stride{}, index{};
  for (int k = 0; k < rank; ++k) {
    shape.push_back(from[axes[k]]);
    stride[k] = product(from, axes[k] + 1, rank);
  }
  Array y(shape);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    y.data()[i] = x.data()[at];
    for (int k = rank - 1; k >= 0; --k) {
      at += stride[k];
      if (++index[k] < shape[k]) break;
      at -= stride[k] * shape[k];
      index[k] = 0;
    }
  }
  return y;
}

/// y[i_axes[0], i_axes[1], …] = x[i_0, i_1, …]
/// dx = dy with the inverse permutation
struct Permute {
  Axes axes{};
  Array forward(const Array& x) { return permuted(x, axes); }
  void backward(const Array& dy, Grad dx) const {
    Axes inverse{};
    for (int k = 0; k < dy.shape().rank(); ++k) inverse[axes[k]] = k;
    dx.add(permuted(dy, inverse));
  }
};

/// y = x, repeated                     x: [X] → y: [shape]
/// dx = sum_X dy, over the copies
struct BroadcastTo {
  Shape shape;
  Array forward(const Array& x) {
    require_defined("broadcast_to", x);
    return broadcast_to(x, shape);
  }
  void backward(const Array& dy, Grad dx) const { dx.add(sum_to(dy, dx.shape())); }
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

Tensor concat(std::span<const Tensor> parts, int axis) {
  if (parts.empty()) fail("[concat] expected at least one tensor, got none");
  for (const Tensor& part : parts) require_defined("concat", part.value());
  const Shape& first = parts[0].shape();
  axis = require_axis("concat", first, axis);
  for (const Tensor& part : parts) {
    if (part.shape().rank() != first.rank() || part.shape().with(axis, first[axis]) != first) {
      fail("[concat] expected shapes equal to {} on every axis but {}, got {}", first, axis,
           part.shape());
    }
  }
  return apply(Concat{axis, {}}, parts);
}

Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

Tensor stack(std::span<const Tensor> parts, int axis) {
  if (parts.empty()) fail("[stack] expected at least one tensor, got none");
  require_defined("stack", parts[0].value());
  const Shape& shape = parts[0].shape();
  if (axis < -shape.rank() - 1 || axis > shape.rank())
    fail("[stack] expected a new axis in [{}, {}] for shape {}, got {}", -shape.rank() - 1,
         shape.rank(), shape, axis);
  if (axis < 0) axis += shape.rank() + 1;
  Shape with_axis;
  for (int i = 0; i <= shape.rank(); ++i) {
    if (i == axis) with_axis.push_back(1);
    if (i < shape.rank()) with_axis.push_back(shape[i]);
  }
  std::vector<Tensor> layers;
  for (const Tensor& part : parts) {
    require_defined("stack", part.value());
    if (part.shape() != shape)
      fail("[stack] expected tensors of one shape, got {} and {}", shape, part.shape());
    layers.push_back(reshape(part, with_axis));
  }
  return concat(layers, axis);
}
Tensor stack(std::initializer_list<Tensor> parts, int axis) {
  return stack(std::span(parts.begin(), parts.size()), axis);
}

Tensor permute(const Tensor& x, std::span<const int> axes) {
  require_defined("permute", x.value());
  const Shape& shape = x.shape();
  const auto rank = static_cast<std::size_t>(shape.rank());
  Axes order{};
  std::array<bool, Shape::max_rank> seen{};
  bool right = axes.size() == rank;
  for (std::size_t k = 0; right && k < rank; ++k) {
    order[k] = require_axis("permute", shape, axes[k]);
    right = !std::exchange(seen[order[k]], true);
  }
  if (!right)
    fail("[permute] expected each axis of {} once, got {{{}}}", shape, fmt::join(axes, ", "));
  return apply(Permute{order}, x);
}
Tensor permute(const Tensor& x, std::initializer_list<int> axes) {
  return permute(x, std::span(axes.begin(), axes.size()));
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) { return apply(BroadcastTo{shape}, x); }

std::vector<Tensor> split(const Tensor& x, std::int64_t parts, int axis) {
  require_defined("split", x.value());
  axis = require_axis("split", x.shape(), axis);
  const std::int64_t n = x.shape()[axis];
  if (parts < 1 || n % parts != 0)
    fail("[split] expected a number of parts that divides {} (axis {} of {}), got {}", n, axis,
         x.shape(), parts);
  std::vector<Tensor> all;
  for (std::int64_t i = 0; i < parts; ++i)
    all.push_back(slice(x, axis, i * (n / parts), (i + 1) * (n / parts)));
  return all;
}

HEED_END
