#include "autograd/kernels/attend.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/arena.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rows.h"

HEED_BEGIN
namespace kernels {

void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out) {
  const std::int64_t size = d / heads, n = static_cast<std::int64_t>(rows.size());
  const real root = real(1) / std::sqrt(static_cast<real>(size));
  std::vector<real, ArenaAllocator<real>> weights(static_cast<std::size_t>(heads * n));
  // Row by row, so that each row of keys and of values is read once, from one place.
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      weights[static_cast<std::size_t>(h * n + t)] =
          root * dot(q + h * size, rows[static_cast<std::size_t>(t)] + h * size, size);
    }
  }
  for (std::int64_t h = 0; h < heads; ++h)
    softmax_row(weights.data() + h * n, weights.data() + h * n, n);
  std::fill_n(out, d, real(0));
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      axpy(weights[static_cast<std::size_t>(h * n + t)],
           rows[static_cast<std::size_t>(t)] + d + h * size, out + h * size, size);
    }
  }
}

namespace plain {

void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out) {
  const std::int64_t size = d / heads;
  for (std::int64_t c = 0; c < d; ++c) {
    const std::int64_t h = c / size;
    double total = 0, mixed = 0;
    for (const real* row : rows) {
      double score = 0;
      for (std::int64_t j = h * size; j < (h + 1) * size; ++j)
        score += double{q[j]} * double{row[j]};
      const double weight = std::exp(score / std::sqrt(static_cast<double>(size)));
      total += weight;
      mixed += weight * double{row[d + c]};
    }
    out[c] = rows.empty() ? real(0) : static_cast<real>(mixed / total);
  }
}

}  // namespace plain
}  // namespace kernels
HEED_END
