#include "nn/layers/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/memory/arena.h"

HEED_BEGIN

Array sinusoids(std::int64_t first, std::int64_t n, std::int64_t d) {
  Array table({n, d});
  std::vector<double> rate;
  for (std::int64_t c = 0; c < d; c += 2)
    rate.push_back(std::exp(-std::log(10000.0) * static_cast<double>(c) / static_cast<double>(d)));
  for (std::int64_t p = 0; p < n; ++p) {
    for (std::int64_t c = 0; c < d; ++c) {
      const double angle = static_cast<double>(first + p) * rate[c / 2];
      table.row(p)[c] = static_cast<real>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

namespace {

using Places = std::vector<std::int32_t, ArenaAllocator<std::int32_t>>;

/// The position of each row within its sequence, starting at `first`.
Places places(Offsets offsets, std::int64_t first) {
  Places all;
  all.reserve(offsets.empty() ? 0 : offsets.back() - offsets.front());
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    for (std::int32_t p = 0; p < offsets[s + 1] - offsets[s]; ++p)
      all.push_back(p + static_cast<std::int32_t>(first));
  }
  return all;
}

/// The table does not change, so each thread caches the rows it has needed so far.
const Array& sinusoids_up_to(std::int64_t n, std::int64_t d) {
  thread_local Array kept;
  if (!kept.defined() || kept.cols() != d || kept.rows() < n)
    kept = sinusoids(0, std::max<std::int64_t>(2 * n, 128), d);
  return kept;
}

}  // namespace

Tensor Positions::operator()(const Tensor& x, Offsets offsets, std::int64_t first) const {
  if (kind != PositionKind::sinusoidal && kind != PositionKind::learned) return x;
  const Places rows = places(offsets, first);
  if (kind == PositionKind::learned) return add(x, embedding(weight, rows));
  const std::int32_t last = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
  const Array& table = sinusoids_up_to(last + 1, d);
  Array all({static_cast<std::int64_t>(rows.size()), d});
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(table.row(rows[r]), d, all.row(static_cast<std::int64_t>(r)));
  return add(x, Tensor(std::move(all)));
}

HEED_END
