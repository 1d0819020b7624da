#include "autograd/kernels/elementwise.h"
#include "autograd/ops/basic.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

using Ids = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// y[t, …] = factor · x[ids[t], …]                       x: [n, …], y: [ids, …]
/// dx[i, …] = factor · Σ_{t: ids[t] = i} dy[t, …]
/// This is the product of a matrix of one-hot rows and x, computed without that matrix.
struct IndexSelect {
  Ids ids;
  real factor = 1;
  Array forward(const Array& x) {
    const auto n = static_cast<std::int64_t>(ids.size());
    const std::int64_t size = x.shape().size(1, x.shape().rank());
    Array y(x.shape().with(0, n));
    for (std::int64_t t = 0; t < n; ++t)
      kernels::scale(factor, x.data() + ids[t] * size, y.data() + t * size, size);
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array& sum = dx.sum();
    const std::int64_t size = dy.shape().size(1, dy.shape().rank());
    for (std::int64_t t = 0; t < dy.shape()[0]; ++t)
      kernels::axpy(factor, dy.data() + t * size, sum.data() + ids[t] * size, size);
  }
};

/// IndexSelect under the name Embedding, which messages and profiles show.
struct Embedding : IndexSelect {};

}  // namespace

Tensor embedding(const Tensor& table, std::span<const std::int32_t> ids, real factor) {
  require_defined("embedding", table.value());
  if (table.shape().rank() != 2)
    fail("[embedding] expected a table [vocabulary, d], got {}", table.shape());
  require_ids("embedding", ids, table.shape()[0]);
  return apply(Embedding{{{ids.begin(), ids.end()}, factor}}, table);
}

Tensor index_select(const Tensor& x, std::span<const std::int32_t> ids) {
  require_axes("index_select", x.value());
  require_ids("index_select", ids, x.shape()[0]);
  return apply(IndexSelect{{ids.begin(), ids.end()}, 1}, x);
}

HEED_END
