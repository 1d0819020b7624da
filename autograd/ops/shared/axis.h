#pragma once
/// Iteration over an array along one of its axes.
#include <cstdint>

#include "autograd/base/real.h"
#include "autograd/base/shape.h"

HEED_BEGIN

/// The product of the extents of axes [begin, end).
inline std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape[i];
  return n;
}

/// A shape viewed as [outer, n, inner], where n is the extent of one axis: a line along that axis
/// has n values, `inner` apart.
struct AxisView {
  std::int64_t outer = 1, n = 1, inner = 1;

  AxisView() = default;
  AxisView(const Shape& shape, int axis)
      : outer(product(shape, 0, axis)),
        n(shape[axis]),
        inner(product(shape, axis + 1, shape.rank())) {}
  /// All values as one line.
  static AxisView all(const Shape& shape) {
    AxisView view;
    view.n = shape.size();
    return view;
  }

  /// Calls visit(line, first) for each line. `line` counts the lines in row-major order of
  /// [outer, inner]; value k of the line is at first + k · inner.
  template <class Visit>
  void for_each_line(Visit visit) const {
    if (outer == 0 || n == 0 || inner == 0) return;  // no values; the other extents may be huge
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) visit(o * inner + i, o * n * inner + i);
    }
  }
};

HEED_END
