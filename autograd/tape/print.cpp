/// Printing of arrays and tensors.
#include <ostream>

#include "autograd/tensor.h"

HEED_BEGIN

namespace {

/// Prints the values along `axis` and the axes after it; `values` points to the first one.
void print(std::ostream& out, const Shape& shape, int axis, const real* values) {
  if (axis == shape.rank()) {
    out << fmt::format("{:.6g}", *values);
    return;
  }
  constexpr std::int64_t ends = 3;
  std::int64_t inner = 1;
  for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
  const std::int64_t n = shape[axis];
  out << '[';
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) out << ", ";
    if (n > 2 * ends + 1 && i == ends) {
      out << "…, ";
      i = n - ends;
    }
    print(out, shape, axis + 1, values + i * inner);
  }
  out << ']';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Array& x) {
  if (!x.defined()) return out << "undefined";
  out << x.shape().str() << ' ';
  print(out, x.shape(), 0, x.data());
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  out << x.value();
  if (!x.needs_grad()) return out;
  return out << (x.node()->leaf() ? ", variable" : ", with a gradient");
}

HEED_END
