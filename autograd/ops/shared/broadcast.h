#pragma once
/// Broadcasting, by NumPy's rule: shapes are aligned at their last axes; an axis that has extent 1
/// or is missing is repeated as often as the other shape requires. Backward sums over the copies
/// that forward made: `sum_to` is the backward of `broadcast_to`, and vice versa.
#include <array>
#include <cstdint>
#include <optional>

#include "autograd/memory/array.h"

HEED_BEGIN

/// The shape that a and b broadcast to; none if they are incompatible.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// The broadcast shape of a and b; throws, naming the op, if they are incompatible.
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

/// x repeated along axes that are missing or have extent 1. Shares x's values if nothing is
/// repeated.
Array broadcast_to(const Array& x, const Shape& shape);

/// x summed over the axes along which an array of `shape` would be repeated to have x's shape.
/// Shares x's values if there is nothing to sum.
Array sum_to(const Array& x, const Shape& shape);

/// x + mask for a mask that broadcasts to x; x itself if there is no mask.
Array add_mask(const char* op, const Array& x, const Array& mask);

/// Iterates over the values of y in order, and over the matching values of a and b.
/// Adjacent axes along which the same inputs are repeated are merged: two equal shapes have one
/// merged axis, a matrix and a row two. Axes of extent 1 are omitted.
struct BroadcastWalk {
  BroadcastWalk(const Shape& y, const Shape& a, const Shape& b);

  int rank = 0;  ///< number of merged axes, at least 1
  std::int64_t size = 0;
  /// Extents of the merged axes, and strides of a and b, which are 0 on repeated axes.
  std::array<std::int64_t, Shape::max_rank> extent{}, a{}, b{};

  std::int64_t run() const { return extent[static_cast<std::size_t>(rank - 1)]; }
  /// Whether one value of a is repeated throughout a run.
  bool repeats_a() const { return a[static_cast<std::size_t>(rank - 1)] == 0; }
  bool repeats_b() const { return b[static_cast<std::size_t>(rank - 1)] == 0; }

  /// Calls visit(offset in a, offset in b, offset in y) for each run: the values along the last
  /// merged axis.
  template <class Visit>
  void for_each_run(Visit visit) const {
    std::array<std::int64_t, Shape::max_rank> index{};
    std::int64_t in_a = 0, in_b = 0;
    for (std::int64_t in_y = 0; in_y < size; in_y += run()) {
      visit(in_a, in_b, in_y);
      for (int i = rank - 2; i >= 0; --i) {
        const auto axis = static_cast<std::size_t>(i);
        in_a += a[axis];
        in_b += b[axis];
        if (++index[axis] < extent[axis]) break;
        in_a -= a[axis] * extent[axis];
        in_b -= b[axis] * extent[axis];
        index[axis] = 0;
      }
    }
  }
};

/// y = f(a, b), elementwise, with broadcasting. `kernel` applies f to two arrays of n values.
template <class F>
Array zip(const char* op, void (*kernel)(const real*, const real*, real*, std::int64_t), F f,
          const Array& a, const Array& b) {
  Array y(broadcast_shape(op, a.shape(), b.shape()));
  const BroadcastWalk walk(y.shape(), a.shape(), b.shape());
  const std::int64_t n = walk.run();
  walk.for_each_run([&](std::int64_t in_a, std::int64_t in_b, std::int64_t in_y) {
    const real* from_a = a.data() + in_a;
    const real* from_b = b.data() + in_b;
    real* to = y.data() + in_y;
    if (walk.repeats_a()) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = f(*from_a, from_b[i]);
    } else if (walk.repeats_b()) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = f(from_a[i], *from_b);
    } else {
      kernel(from_a, from_b, to, n);
    }
  });
  return y;
}

HEED_END
