#include "autograd/ops/more/index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

using Ids = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// y[i, …] = Σ_{t: ids[t] = i} x[t, …]                   x: [ids, …], y: [n, …]
/// dx[t, …] = dy[ids[t], …]
struct ScatterAdd {
  Ids ids;
  std::int64_t n = 0;
  Array forward(const Array& x) {
    Array y = Array::zeros(x.shape().with(0, n));
    const std::int64_t size = x.shape().size(1, x.shape().rank());
    for (std::int64_t t = 0; t < x.shape()[0]; ++t)
      kernels::add(y.data() + ids[t] * size, x.data() + t * size, y.data() + ids[t] * size, size);
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dx.shape());
    const std::int64_t size = dy.shape().size(1, dy.shape().rank());
    for (std::size_t t = 0; t < ids.size(); ++t)
      std::copy_n(dy.data() + ids[t] * size, size, g.data() + static_cast<std::int64_t>(t) * size);
    dx.add(std::move(g));
  }
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

/// Whether a precedes b in descending order; NaN counts as larger than any number.
bool above(real a, real b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

}  // namespace

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
