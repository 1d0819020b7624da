#include "autograd/ops/more/shape.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"
#include "autograd/tape/many.h"

HEED_BEGIN

namespace {

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
    const std::int64_t outer = y.shape().size(0, axis),
                       inner = y.shape().size(axis + 1, y.shape().rank());
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
    const Shape& shape = dy.shape();
    const std::int64_t outer = shape.size(0, axis), inner = shape.size(axis + 1, shape.rank());
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < dx.size(); ++k) {
      if (dx[k] && outer == 1) {  // contiguous: shares dy's values
        const Array part = dy.reshaped({shape[axis], inner}).sliced(begin, begin + extents[k]);
        dx[k].add(part.reshaped(dx[k].shape()));
      } else if (dx[k]) {
        Array part(dx[k].shape());
        const std::int64_t n = extents[k] * inner;
        for (std::int64_t o = 0; part.size() > 0 && o < outer; ++o)
          std::copy_n(dy.data() + (o * shape[axis] + begin) * inner, n, part.data() + o * n);
        dx[k].add(std::move(part));
      }
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
    stride[k] = from.size(axes[k] + 1, rank);
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
