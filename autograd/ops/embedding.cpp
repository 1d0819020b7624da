#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/check.h"

HEED_BEGIN

namespace {

/// y[t, :] = factor · table[ids[t], :]                   table: [vocabulary, d], y: [ids, d]
/// dtable[i, :] = factor · Σ_{t: ids[t] = i} dy[t, :]
/// This is the product of a matrix of one-hot rows and the table, without the matrix.
struct Embedding {
  std::vector<std::int32_t, ArenaAllocator<std::int32_t>> ids;
  real factor = 1;
  Array forward(const Array& table) {
    const auto n = static_cast<std::int64_t>(ids.size());
    Array y({n, table.cols()});
    for (std::int64_t t = 0; t < n; ++t) {
      kernels::scale(factor, table.row(ids[static_cast<std::size_t>(t)]), y.row(t), y.cols());
    }
    return y;
  }
  void backward(const Array& dy, Grad dtable) const {
    Array& sum = dtable.sum();
    for (std::int64_t t = 0; t < dy.rows(); ++t) {
      kernels::axpy(factor, dy.row(t), sum.row(ids[static_cast<std::size_t>(t)]), dy.cols());
    }
  }
};

}  // namespace

Tensor embedding(const Tensor& table, std::span<const std::int32_t> ids, real factor) {
  require_defined("embedding", table.value());
  if (table.shape().rank() != 2)
    fail("[embedding] expected a table [vocabulary, d], got {}", table.shape());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= table.shape()[0]) {
      fail("[embedding] expected ids in [0, {}), got {} at position {}", table.shape()[0], ids[t],
           t);
    }
  }
  return apply(Embedding{{ids.begin(), ids.end()}, factor}, table);
}

HEED_END
