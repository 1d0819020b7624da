#include "nn/layers/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

std::int32_t last_of(const PositionIds& positions) {
  return positions.empty() ? 0 : *std::ranges::max_element(positions);
}

// ---- the parts of the schemes --------------------------------------------------------------------

OptionErrors even_width(const ModelOptions& o) {
  if (o.d_model % 2 == 0) return {};
  return {{{"model.d_model", "model.positions"},
           fmt::format("{} is odd, but positions: {} needs an even width", o.d_model,
                       name_of(o.positions))}};
}

Tensor sinusoidal_vectors(const Positions& p, const PositionIds& positions) {
  const Array& table = sinusoids_up_to(last_of(positions) + 1, p.d);
  Array all({static_cast<std::int64_t>(positions.size()), p.d});
  for (std::size_t r = 0; r < positions.size(); ++r)
    std::copy_n(table.row(positions[r]), p.d, all.row(static_cast<std::int64_t>(r)));
  return Tensor(std::move(all));
}

Tensor learned_vectors(const Positions& p, const PositionIds& positions) {
  const std::int64_t rows = p.weight.shape().rows();
  if (!positions.empty() && last_of(positions) >= rows)
    fail("[positions] a sequence of {} rows exceeds the table of {} positions (max_positions)",
         last_of(positions) + 1, rows);
  return embedding(p.weight, positions);
}

RotaryOptions rotary_options(const ModelOptions& o) {
  return {
      .size = o.d_model / o.heads, .columns = 0, .pairs = o.rotary_pairs, .base = o.rotary_base};
}

OptionErrors even_heads(const ModelOptions& o) {
  if (o.d_model / o.heads % 2 == 0) return {};
  return {{{"model.heads", "model.d_model", "model.positions"},
           fmt::format("each head has width {}, but positions: rotary needs an even width",
                       o.d_model / o.heads)}};
}

Tensor rotated_heads(const LayerPositions& p, const Tensor& x, std::int64_t heads,
                     const PositionIds& positions) {
  RotaryOptions options = p.rotary;
  options.columns = heads * options.size;
  return rotary(x, positions, options);
}

HeadMap rotation(const ModelOptions& o) {
  const RotaryOptions options = rotary_options(o);
  return {rotation_formula(options), "rotated by −{} θ",
          [options](double* head, std::int64_t position, double direction) {
            rotate_head(head, position, direction, options);
          }};
}

OptionErrors valid_buckets(const ModelOptions& o) {
  OptionErrors errors;
  if (o.t5_buckets % 4 != 0)
    errors.push_back(
        {{"model.t5_buckets"}, fmt::format("{} is not a multiple of 4", o.t5_buckets)});
  if (o.t5_distance <= o.t5_buckets / 2)
    errors.push_back({{"model.t5_distance", "model.t5_buckets"},
                      fmt::format("{} must be greater than half of t5_buckets ({})", o.t5_distance,
                                  o.t5_buckets)});
  return errors;
}

ScoreTermPtr shaw_term(const LayerPositions& p, std::int64_t, LayerCache*) {
  const std::int64_t distances = p.weight.shape()[0];
  return std::make_shared<RelativeKeys>(p.weight, p.causal ? 0 : -(distances / 2));
}

ScoreTermPtr xl_term(const LayerPositions& p, std::int64_t max_length, LayerCache* cache) {
  // Decoding computes the keys for twice the length, so that few steps recompute them.
  const bool decoding = cache != nullptr;
  const std::int64_t n = std::max<std::int64_t>(decoding ? 2 * max_length : max_length, 1);
  const std::int64_t first = p.causal ? 0 : 1 - n;
  Tensor keys;
  if (decoding && cache->distances.defined() && cache->distances.rows() >= max_length) {
    keys = Tensor(cache->distances);
  } else {
    keys = affine(Tensor(sinusoids(first, n - first, p.weight.shape()[0])), p.weight);
    if (decoding) cache->distances = keys.value();
  }
  return std::make_shared<RelativeKeys>(keys, first, sub(p.v, p.u));
}

constexpr std::string_view trained_distances =
    "trained keys or biases for distances (Shaw et al., T5, Transformer-XL)";

constexpr std::array schemes{
    PositionScheme{.name = "sinusoidal",
                   .help = "a vector added to each token's embedding",
                   .check = even_width,
                   .label = "sinusoids",
                   .vectors = sinusoidal_vectors},
    PositionScheme{
        .name = "learned",
        .help = "a vector added to each token's embedding",
        .limited = true,
        .keys = {"max_positions"},
        .label = "learned, up to {}",
        .init_stack = [](Positions& p, const ModelOptions& o, bool,
                         Init& init) { p.weight = init.table(o.max_positions, o.d_model); },
        .vectors = learned_vectors},
    PositionScheme{.name = "rotary",
                   .help = "queries and keys are rotated",
                   .by_distance = true,
                   .keys = {"rotary_pairs", "rotary_base"},
                   .check = even_heads,
                   .init_layer = [](LayerPositions& p, const ModelOptions& o,
                                    Init&) { p.rotary = rotary_options(o); },
                   .map_heads = rotated_heads,
                   .head_map = rotation},
    PositionScheme{.name = "alibi",
                   .help = "scores decrease with the distance",
                   .by_distance = true,
                   .init_stack = [](Positions& p, const ModelOptions&, bool,
                                    Init&) { p.terms.push_back(std::make_shared<Alibi>()); }},
    PositionScheme{.name = "relative_shaw",
                   .help = trained_distances,
                   .by_distance = true,
                   .keys = {"shaw_distance"},
                   .init_layer =
                       [](LayerPositions& p, const ModelOptions& o, Init& init) {
                         const std::int64_t farthest = o.shaw_distance;
                         p.weight =
                             init.table(p.causal ? farthest + 1 : 2 * farthest + 1, o.d_model);
                       },
                   .layer_term = shaw_term},
    PositionScheme{.name = "relative_t5",
                   .help = trained_distances,
                   .by_distance = true,
                   .keys = {"t5_buckets", "t5_distance"},
                   .check = valid_buckets,
                   .label = "biases of all layers",
                   .init_stack =
                       [](Positions& p, const ModelOptions& o, bool causal, Init& init) {
                         p.weight = init.table(o.t5_buckets, o.heads);
                         p.terms.push_back(
                             std::make_shared<DistanceBias>(p.weight, causal, o.t5_distance));
                       }},
    PositionScheme{.name = "relative_xl",
                   .help = trained_distances,
                   .by_distance = true,
                   .check = even_width,
                   .query_bias = "Transformer-XL's u",
                   .init_layer =
                       [](LayerPositions& p, const ModelOptions& o, Init& init) {
                         p.weight = init.matrix(o.d_model, o.d_model);
                         p.u = init.zeros(o.d_model);
                         p.v = init.zeros(o.d_model);
                       },
                   .layer_term = xl_term},
    PositionScheme{.name = "none"},
};

}  // namespace

std::span<const PositionScheme> position_schemes() { return schemes; }

const std::vector<std::string_view>& names_of(PositionKind) {
  constexpr auto names = table_names<PositionKind>(schemes);
  static const std::vector<std::string_view> all(names.begin(), names.end());
  return all;
}

std::int64_t position_limit(const ModelOptions& options) {
  return info_of(options.positions).limited ? options.max_positions : 0;
}

Positions::Positions(const ModelOptions& options, bool causal, Init& init)
    : kind(options.positions), d(options.d_model) {
  if (const auto make = info_of(kind).init_stack) make(*this, options, causal, init);
}

Tensor Positions::operator()(const Tensor& x, Offsets offsets, std::int64_t first) const {
  const auto vectors = info_of(kind).vectors;
  if (vectors == nullptr) return x;
  require_offsets("positions", offsets, x.shape().rows());
  return add(x, vectors(*this, position_ids(offsets, first)));
}

LayerPositions::LayerPositions(const ModelOptions& options, bool is_causal, Init& init)
    : kind(options.positions), causal(is_causal) {
  if (const auto make = info_of(kind).init_layer) make(*this, options, init);
}

Tensor LayerPositions::projection_bias(const Tensor& bias, std::int64_t rows) const {
  if (!u.defined()) return bias;
  const Tensor zeros(Array::zeros({rows - u.shape()[0]}));
  const Tensor with_u = concat({u, zeros}, 0);
  return bias.defined() ? add(bias, with_u) : with_u;
}

Tensor LayerPositions::rotated(const Tensor& x, std::int64_t heads, Offsets offsets,
                               std::int64_t first) const {
  const auto map = info_of(kind).map_heads;
  return map == nullptr ? x : map(*this, x, heads, position_ids(offsets, first));
}

void LayerPositions::add_terms(std::vector<ScoreTermPtr>& terms, std::int64_t max_length,
                               LayerCache* cache) const {
  if (const auto term = info_of(kind).layer_term) terms.push_back(term(*this, max_length, cache));
}

Parameters LayerPositions::parameters() const {
  Parameters all;
  if (weight.defined()) all.push_back({"weight", weight});
  if (u.defined()) all.push_back({"u", u});
  if (v.defined()) all.push_back({"v", v});
  return all;
}

HEED_END
