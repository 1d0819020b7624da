#pragma once
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/option_error.h"
#include "autograd/memory/block.h"
#include "autograd/ops/more/attention/rotary.h"
#include "nn/context.h"
#include "nn/option_kinds.h"
#include "nn/parameters.h"

namespace heed {

/// The kinds of position encoding, in the order of position_schemes(). A new kind requires a value
/// and a row in positions.cpp; configs, drawings, `heed trace` and the tests follow the row.
enum class PositionKind : int {
  sinusoidal,
  learned,
  rotary,
  alibi,
  relative_shaw,
  relative_t5,
  relative_xl,
  none
};

}  // namespace heed

HEED_BEGIN

struct Positions;
struct LayerPositions;
using PositionIds = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// A map of the heads of queries and keys that depends on the position, for programs that display
/// it.
struct HeadMap {
  std::string forward;   ///< "columns 2k and 2k + 1 rotated by i θ_k, …", for position i
  std::string backward;  ///< the map of gradients: "rotated by −{} θ"; {} stands for the position
  /// Maps a head in float64; with direction −1, its gradient.
  std::function<void(double* head, std::int64_t position, double direction)> apply;
};

/// A position scheme. Its functions are null if it has no such part.
struct PositionScheme {
  std::string_view name;
  std::string_view help = {};  ///< meaning; consecutive schemes with the same meaning share it
  /// Self-attention depends on positions only through their distances, which allows sequences of
  /// any length.
  bool by_distance = false;
  bool limited = false;                       ///< a model has max_positions positions
  std::array<std::string_view, 4> keys = {};  ///< keys of `model` that only this scheme reads
  /// Checks the options of a model with this scheme.
  OptionErrors (*check)(const ModelOptions&) = nullptr;
  /// Text beside the stack in the drawing of a model; {} stands for the maximum length.
  std::string_view label = {};
  std::string_view query_bias = {};  ///< meaning of LayerPositions::u

  /// Makes the tensors and score terms that the layers of a stack share.
  void (*init_stack)(Positions&, const ModelOptions&, bool causal, Init&) = nullptr;
  /// The vectors that are added to rows at these positions: [rows, d].
  Tensor (*vectors)(const Positions&, const PositionIds&) = nullptr;
  /// Makes the tensors of a self-attention layer.
  void (*init_layer)(LayerPositions&, const ModelOptions&, Init&) = nullptr;
  /// x with the first `heads` heads of each row mapped according to its position.
  Tensor (*map_heads)(const LayerPositions&, const Tensor& x, std::int64_t heads,
                      const PositionIds&) = nullptr;
  HeadMap (*head_map)(const ModelOptions&) = nullptr;  ///< the map of map_heads
  /// The score term of a layer (LayerPositions::add_terms).
  ScoreTermPtr (*layer_term)(const LayerPositions&, std::int64_t max_length, LayerCache*) = nullptr;

  bool adds_to_scores() const { return by_distance && map_heads == nullptr; }
};

std::span<const PositionScheme> position_schemes();
inline const PositionScheme& info_of(PositionKind kind) {
  return position_schemes()[static_cast<std::size_t>(kind)];
}
const std::vector<std::string_view>& names_of(PositionKind);

/// The maximum length of a sequence; 0: no limit. (A language model is limited by its context.)
std::int64_t position_limit(const ModelOptions& options);

/// Positions that a stack of blocks shares: a vector added to each row, or a term added to the
/// scores of every self-attention layer. (Cross-attention has no term: its keys belong to another
/// sequence.)
/// - sinusoidal: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(…)
///   (Vaswani et al. 2017, section 3.5)
/// - learned: rows of a trained table [max_positions, d]
/// - alibi: a penalty proportional to the distance (autograd/ops/more/attention/alibi.h)
/// - relative_t5: a trained bias for each bucket of distances
///   (autograd/ops/more/attention/distance_bias.h)
struct Positions {
  PositionKind kind = PositionKind::none;
  std::int64_t d = 0;
  Tensor weight;                    ///< learned: [max_positions, d]; relative_t5: [buckets, heads]
  std::vector<ScoreTermPtr> terms;  ///< score terms of every self-attention layer

  Positions() = default;
  /// `causal`: a token reads itself and earlier tokens only.
  Positions(const ModelOptions& options, bool causal, Init& init);

  /// x: [rows, d] → [rows, d]. Each sequence begins at position `first`. Sinusoidal and learned
  /// positions throw Error(failed) if the offsets are not those of x, learned positions also if a
  /// position lies beyond the end of the table.
  Tensor operator()(const Tensor& x, Offsets offsets, std::int64_t first = 0) const;
  Parameters parameters() const {
    return weight.defined() ? Parameters{{"weight", weight}} : Parameters{};
  }
};

/// Positions of a single self-attention layer:
/// - rotary: queries and keys are rotated by their positions (autograd/ops/more/attention/rotary.h)
/// - relative_shaw: a trained key for each distance up to a maximum
/// - relative_xl: keys of distances are sinusoids times a matrix; trained vectors are added to the
///   query, u before the product with keys and v before the product with the keys of distances
/// Other kinds do not change the layer. The formulas of relative_shaw and relative_xl are in
/// autograd/ops/more/attention/relative_keys.h.
struct LayerPositions {
  PositionKind kind = PositionKind::none;
  bool causal = false;
  RotaryOptions rotary;
  Tensor weight;  ///< relative_shaw: [distances, d]; relative_xl: [d, d]
  Tensor u, v;    ///< relative_xl: [d]; u is added to the bias of the queries

  LayerPositions() = default;
  LayerPositions(const ModelOptions& options, bool is_causal, Init& init);

  /// The bias [rows] of the projection to queries, keys and values, with u added to that of the
  /// queries. `bias` and the result may be undefined.
  Tensor projection_bias(const Tensor& bias, std::int64_t rows) const;
  /// Maps the first `heads` heads of each row of x. Each sequence begins at position `first`. Kinds
  /// other than rotary return x unchanged.
  Tensor rotated(const Tensor& x, std::int64_t heads, Offsets offsets, std::int64_t first) const;
  /// Adds the score terms of this layer, for sequences of at most `max_length` keys. A cache, if
  /// not null, stores the keys of distances for later steps.
  void add_terms(std::vector<ScoreTermPtr>& terms, std::int64_t max_length,
                 LayerCache* cache) const;
  Parameters parameters() const;
};

/// Rows [first, first + n) of the sinusoidal table: [n, d].
Array sinusoids(std::int64_t first, std::int64_t n, std::int64_t d);

HEED_END
