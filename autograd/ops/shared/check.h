#pragma once
/// Argument checks shared by the ops.
#include <cstdint>
#include <span>

#include "autograd/memory/array.h"

HEED_BEGIN

inline void require_defined(const char* op, const Array& x) {
  if (!x.defined()) fail("[{}] expected a tensor with values, got an undefined one", op);
}

/// Checks a gain or a bias, which may be undefined, for the rows of x.
inline void require_width(const char* op, const char* what, const Array& w, const Array& x) {
  if (w.defined() && w.shape() != Shape{x.cols()}) {
    fail("[{}] expected {} of shape [{}] for x {}, got {}", op, what, x.cols(), x.shape(),
         w.shape());
  }
}

inline void require_eps(const char* op, real eps) {
  if (!(eps >= 0)) fail("[{}] expected eps >= 0, got {}", op, eps);
}

inline void require_axes(const char* op, const Array& x) {
  require_defined(op, x);
  if (x.shape().rank() == 0) fail("[{}] expected at least one axis, got a scalar", op);
}

/// The axis, counted from the front; a negative `axis` counts from the back.
inline int require_axis(const char* op, const Shape& shape, int axis) {
  if (axis < -shape.rank() || axis >= shape.rank())
    fail("[{}] expected an axis of {}, got {}", op, shape, axis);
  return shape.normalize(axis);
}

inline void require_ids(const char* op, std::span<const std::int32_t> ids, std::int64_t n) {
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= n)
      fail("[{}] expected ids in [0, {}), got {} at position {}", op, n, ids[t], t);
  }
}

HEED_END
