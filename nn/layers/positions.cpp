#include "nn/layers/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/memory/block.h"
#include "autograd/ops/basic.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/distance_bias.h"
#include "autograd/ops/more/attention/relative_keys.h"
#include "autograd/ops/more/attention/rotary.h"
#include "autograd/ops/more/check.h"
#include "autograd/ops/more/shape.h"
#include "nn/options.h"

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

using PositionIds = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// The position of each row within its sequence, starting at `first`.
PositionIds position_ids(Offsets offsets, std::int64_t first) {
  PositionIds all;
  all.reserve(offsets.empty() ? 0 : offsets.back() - offsets.front());
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    for (std::int32_t p = 0; p < offsets[s + 1] - offsets[s]; ++p)
      all.push_back(p + static_cast<std::int32_t>(first));
  }
  return all;
}

/// At least the first n rows of the sinusoidal table, which each thread caches because it is
/// constant.
const Array& sinusoids_up_to(std::int64_t n, std::int64_t d) {
  thread_local Array cached;
  if (!cached.defined() || cached.cols() != d || cached.rows() < n)
    cached = sinusoids(0, std::max<std::int64_t>(2 * n, 128), d);
  return cached;
}

}  // namespace

Positions::Positions(const ModelOptions& options, bool causal, Init& init)
    : kind(options.positions), d(options.d_model) {
  if (kind == PositionKind::learned) weight = init.table(options.max_positions, d);
  if (kind == PositionKind::alibi) terms.push_back(std::make_shared<Alibi>());
  if (kind == PositionKind::relative_t5) {
    weight = init.table(options.t5_buckets, options.heads);
    terms.push_back(std::make_shared<DistanceBias>(weight, causal, options.t5_distance));
  }
}

Tensor Positions::operator()(const Tensor& x, Offsets offsets, std::int64_t first) const {
  if (kind != PositionKind::sinusoidal && kind != PositionKind::learned) return x;
  require_offsets("positions", offsets, x.shape().rows());
  const PositionIds rows = position_ids(offsets, first);
  const std::int32_t last = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
  if (kind == PositionKind::learned) {
    if (!rows.empty() && last >= weight.shape().rows())
      fail("[positions] a sequence of {} rows exceeds the table of {} positions (max_positions)",
           last + 1, weight.shape().rows());
    return add(x, embedding(weight, rows));
  }
  const Array& table = sinusoids_up_to(last + 1, d);
  Array all({static_cast<std::int64_t>(rows.size()), d});
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(table.row(rows[r]), d, all.row(static_cast<std::int64_t>(r)));
  return add(x, Tensor(std::move(all)));
}

LayerPositions::LayerPositions(const ModelOptions& options, bool is_causal, Init& init)
    : kind(options.positions),
      causal(is_causal),
      d(options.d_model),
      farthest(options.shaw_distance) {
  switch (kind) {
    case PositionKind::rotary:
      rotary = {.size = d / options.heads,
                .columns = 0,
                .pairs = options.rotary_pairs,
                .base = options.rotary_base};
      break;
    case PositionKind::relative_shaw:
      weight = init.table(causal ? farthest + 1 : 2 * farthest + 1, d);
      break;
    case PositionKind::relative_xl:
      weight = init.matrix(d, d);
      u = init.zeros(d);
      v = init.zeros(d);
      break;
    default:
      kind = PositionKind::none;
  }
}

Tensor LayerPositions::projection_bias(const Tensor& bias) const {
  if (kind != PositionKind::relative_xl) return bias;
  const Tensor zeros(Array::zeros({bias.shape()[0] - d}));
  return add(bias, concat({u, zeros}, 0));
}

Tensor LayerPositions::rotated(const Tensor& x, std::int64_t heads, Offsets offsets,
                               std::int64_t first) const {
  if (kind != PositionKind::rotary) return x;
  RotaryOptions options = rotary;
  options.columns = heads * rotary.size;
  return heed::rotary(x, position_ids(offsets, first), options);
}

void LayerPositions::add_terms(std::vector<ScoreTermPtr>& terms, std::int64_t max_length,
                               LayerCache* cache) const {
  if (kind == PositionKind::relative_shaw)
    terms.push_back(std::make_shared<RelativeKeys>(weight, causal ? 0 : -farthest));
  if (kind != PositionKind::relative_xl) return;
  // Decoding computes the keys for twice the length, so that few steps recompute them.
  const bool decoding = cache != nullptr;
  const std::int64_t n = std::max<std::int64_t>(decoding ? 2 * max_length : max_length, 1);
  const std::int64_t first = causal ? 0 : 1 - n;
  Tensor keys;
  if (decoding && cache->distances.defined() && cache->distances.rows() >= max_length) {
    keys = Tensor(cache->distances);
  } else {
    keys = affine(Tensor(sinusoids(first, n - first, d)), weight);
    if (decoding) cache->distances = keys.value();
  }
  terms.push_back(std::make_shared<RelativeKeys>(keys, first, sub(v, u)));
}

Parameters LayerPositions::parameters() const {
  Parameters all;
  if (weight.defined()) all.push_back({"weight", weight});
  if (u.defined()) all.push_back({"u", u});
  if (v.defined()) all.push_back({"v", v});
  return all;
}

HEED_END
