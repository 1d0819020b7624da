#include "autograd/ops/index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/axis.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

using Ids = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// The shape of `count` entries of x: [n, …] → [count, …].
Shape entries(const Shape& x, std::int64_t count) { return x.with(0, count); }

/// The number of values in an entry of the first axis.
std::int64_t entry_size(const Shape& x) { return product(x, 1, x.rank()); }

/// y[t, …] = factor · x[ids[t], …]                       x: [n, …], y: [ids, …]
/// dx[i, …] = factor · Σ_{t: ids[t] = i} dy[t, …]
/// This is the product of a matrix of one-hot rows and x, computed without that matrix.
struct IndexSelect {
  Ids ids;
  real factor = 1;
  Array forward(const Array& x) {
    const auto n = static_cast<std::int64_t>(ids.size());
    const std::int64_t size = entry_size(x.shape());
    Array y(entries(x.shape(), n));
    for (std::int64_t t = 0; t < n; ++t)
      kernels::scale(factor, x.data() + ids[t] * size, y.data() + t * size, size);
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array& sum = dx.sum();
    const std::int64_t size = entry_size(dy.shape());
    for (std::int64_t t = 0; t < dy.shape()[0]; ++t)
      kernels::axpy(factor, dy.data() + t * size, sum.data() + ids[t] * size, size);
  }
};

/// IndexSelect under the name Embedding, which messages and profiles show.
struct Embedding : IndexSelect {};

/// y[i, …] = Σ_{t: ids[t] = i} x[t, …]                   x: [ids, …], y: [n, …]
/// dx[t, …] = dy[ids[t], …]
struct ScatterAdd {
  Ids ids;
  std::int64_t n = 0;
  Array forward(const Array& x) {
    Array y = Array::zeros(entries(x.shape(), n));
    const std::int64_t size = entry_size(x.shape());
    for (std::int64_t t = 0; t < x.shape()[0]; ++t)
      kernels::add(y.data() + ids[t] * size, x.data() + t * size, y.data() + ids[t] * size, size);
    return y;
  }
  void backward(const Array& dy, Grad dx) const { dx.add(IndexSelect{ids}.forward(dy)); }
};

/// y[r, j] = x[r, ids[r, j]]                             x: [rows, n], ids, y: [rows, k]
/// dx[r, i] = Σ_{j: ids[r, j] = i} dy[r, j]
struct Gather {
  Ids ids;
  Array forward(const Array& x) {
    const std::int64_t rows = x.shape().rows();
    const auto count = static_cast<std::int64_t>(ids.size());
    const std::int64_t k = rows == 0 ? 0 : count / rows;
    Array y(x.shape().with(-1, k));
    for (std::int64_t i = 0; i < y.size(); ++i) y.data()[i] = x.row(i / k)[ids[i]];
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array& sum = dx.sum();
    for (std::int64_t i = 0; i < dy.size(); ++i) sum.row(i / dy.cols())[ids[i]] += dy.data()[i];
  }
};

void require_ids(const char* op, std::span<const std::int32_t> ids, std::int64_t n) {
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= n)
      fail("[{}] expected ids in [0, {}), got {} at position {}", op, n, ids[t], t);
  }
}

void require_axes(const char* op, const Array& x) {
  require_defined(op, x);
  if (x.shape().rank() == 0) fail("[{}] expected at least one axis, got a scalar", op);
}

/// Whether a precedes b in descending order; NaN counts as larger than any number.
bool above(real a, real b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

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

Tensor scatter_add(const Tensor& x, std::span<const std::int32_t> ids, std::int64_t n) {
  require_axes("scatter_add", x.value());
  if (static_cast<std::int64_t>(ids.size()) != x.shape()[0])
    fail("[scatter_add] expected one id per entry of {} ({} in all), got {}", x.shape(),
         x.shape()[0], ids.size());
  if (n < 0) fail("[scatter_add] expected n of at least 0, got {}", n);
  require_ids("scatter_add", ids, n);
  return apply(ScatterAdd{{ids.begin(), ids.end()}, n}, x);
}

Tensor gather(const Tensor& x, std::span<const std::int32_t> ids) {
  require_axes("gather", x.value());
  const std::int64_t rows = x.shape().rows();
  const auto count = static_cast<std::int64_t>(ids.size());
  if (rows == 0 ? count != 0 : count % rows != 0)
    fail("[gather] expected the same number of ids for each of the {} rows of {}, got {} in all",
         rows, x.shape(), count);
  require_ids("gather", ids, x.shape().cols());
  return apply(Gather{{ids.begin(), ids.end()}}, x);
}

std::vector<std::int32_t> argmax(const Array& x) {
  require_axes("argmax", x);
  if (x.cols() == 0) fail("[argmax] expected at least one value in a row, got shape {}", x.shape());
  return top_k(x, 1).ids;
}

TopK top_k(const Array& x, std::int64_t k) {
  require_axes("top_k", x);
  const std::int64_t rows = x.rows(), n = x.cols();
  if (k < 0 || k > n) fail("[top_k] expected k in [0, {}] for {}, got {}", n, x.shape(), k);
  TopK best{Array(x.shape().with(-1, k)), {}};
  if (best.values.size() == 0) return best;  // avoids a loop: rows or n may be huge
  std::vector<std::int32_t> order(n);
  for (std::int64_t r = 0; r < rows; ++r) {
    const real* const row = x.row(r);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [row](std::int32_t a, std::int32_t b) {
                        return above(row[a], row[b]) || (!above(row[b], row[a]) && a < b);
                      });
    for (std::int64_t j = 0; j < k; ++j) best.values.row(r)[j] = row[order[j]];
    best.ids.insert(best.ids.end(), order.begin(), order.begin() + k);
  }
  return best;
}

HEED_END
