#include "autograd/ops/shared/broadcast.h"

#include <algorithm>
#include <functional>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"

HEED_BEGIN

namespace {

/// The extent of x along an axis of a shape of the given rank, with the last axes aligned; 1 if x
/// lacks the axis.
std::int64_t aligned_extent(const Shape& x, int rank, int axis) {
  const int x_axis = axis - (rank - x.rank());
  return x_axis < 0 ? 1 : x[x_axis];
}

}  // namespace

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape y;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t in_a = aligned_extent(a, rank, axis), in_b = aligned_extent(b, rank, axis);
    if (in_a != in_b && in_a != 1 && in_b != 1) return std::nullopt;
    y.push_back(in_a == 1 ? in_b : in_a);
  }
  return y;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  if (const auto y = broadcast(a, b)) return *y;
  fail("[{}] expected shapes that broadcast together, got {} and {}", op, a, b);
}

BroadcastWalk::BroadcastWalk(const Shape& y, const Shape& a_shape, const Shape& b_shape)
    : size(y.size()) {
  // Whether a and b are repeated along each merged axis.
  std::array<bool, Shape::max_rank> repeats_a{}, repeats_b{};
  for (int i = 0; i < y.rank(); ++i) {
    if (y[i] == 1) continue;
    const bool of_a = aligned_extent(a_shape, y.rank(), i) == 1,
               of_b = aligned_extent(b_shape, y.rank(), i) == 1;
    const auto last = static_cast<std::size_t>(rank - 1), next = static_cast<std::size_t>(rank);
    if (rank > 0 && repeats_a[last] == of_a && repeats_b[last] == of_b) {
      extent[last] *= y[i];
    } else {
      extent[next] = y[i];
      repeats_a[next] = of_a;
      repeats_b[next] = of_b;
      ++rank;
    }
  }
  if (rank == 0) extent[static_cast<std::size_t>(rank++)] = 1;
  std::int64_t stride_a = 1, stride_b = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto axis = static_cast<std::size_t>(i);
    a[axis] = repeats_a[axis] ? 0 : stride_a;
    b[axis] = repeats_b[axis] ? 0 : stride_b;
    if (!repeats_a[axis]) stride_a *= extent[axis];
    if (!repeats_b[axis]) stride_b *= extent[axis];
  }
}

Array broadcast_to(const Array& x, const Shape& shape) {
  if (broadcast_shape("broadcast_to", x.shape(), shape) != shape) {
    fail("[broadcast_to] expected a shape that broadcasts to {}, got {}", shape, x.shape());
  }
  if (x.size() == shape.size()) return x.reshaped(shape);
  Array y(shape);
  const BroadcastWalk walk(shape, x.shape(), shape);
  walk.for_each_run([&](std::int64_t in_x, std::int64_t, std::int64_t in_y) {
    if (walk.repeats_a()) {
      std::fill_n(y.data() + in_y, walk.run(), x.data()[in_x]);
    } else {
      std::copy_n(x.data() + in_x, walk.run(), y.data() + in_y);
    }
  });
  return y;
}

Array sum_to(const Array& x, const Shape& shape) {
  if (broadcast_shape("sum_to", x.shape(), shape) != x.shape()) {
    fail("[sum_to] expected a shape that broadcasts to {}, got {}", x.shape(), shape);
  }
  if (x.size() == shape.size()) return x.reshaped(shape);
  Array y = Array::zeros(shape);
  BroadcastWalk walk(x.shape(), shape, x.shape());
  if (walk.repeats_a()) {
    walk.for_each_run([&](std::int64_t in_y, std::int64_t, std::int64_t in_x) {
      y.data()[in_y] += kernels::sum(x.data() + in_x, walk.run());
    });
    return y;
  }
  // The last merged axis is kept. The one before it is summed, because two adjacent axes that are
  // both kept would have been merged. Each step sums the rows of one matrix [rows, cols].
  const std::int64_t cols = walk.run();
  --walk.rank;  // makes the last two merged axes one run
  const std::int64_t rows = walk.run();
  walk.extent[static_cast<std::size_t>(walk.rank - 1)] = rows * cols;
  walk.for_each_run([&](std::int64_t in_y, std::int64_t, std::int64_t in_x) {
    kernels::add_column_sums(x.data() + in_x, rows, cols, y.data() + in_y);
  });
  return y;
}

Array add_mask(const char* op, const Array& x, const Array& mask) {
  if (!mask.defined()) return x;
  if (broadcast_shape(op, x.shape(), mask.shape()) != x.shape()) {
    fail("[{}] expected a mask that broadcasts to {}, got {}", op, x.shape(), mask.shape());
  }
  return zip(op, kernels::add, std::plus<real>(), x, mask);
}

HEED_END
