#pragma once
/// What ops ask of their arguments before they compute anything.
#include "autograd/array.h"

HEED_BEGIN

inline void require_defined(const char* op, const Array& x) {
  if (!x.defined()) fail("[{}] expected a tensor with values, got an undefined one", op);
}

/// The axis counted from the front.
inline int require_axis(const char* op, const Shape& shape, int axis) {
  if (axis < -shape.rank() || axis >= shape.rank())
    fail("[{}] expected an axis of {}, got {}", op, shape, axis);
  return shape.normalize(axis);
}

HEED_END
