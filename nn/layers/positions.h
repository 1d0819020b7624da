#pragma once
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/ops/more/attention/rotary.h"
#include "nn/context.h"
#include "nn/option_kinds.h"
#include "nn/parameters.h"

namespace heed {

/// The kinds of position encoding. A new kind requires a value, a name, and a case in Positions or
/// LayerPositions below; the tests then cover it.
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
constexpr auto names_of(PositionKind) {
  return enum_names<PositionKind>("sinusoidal", "learned", "rotary", "alibi", "relative_shaw",
                                  "relative_t5", "relative_xl", "none");
}

/// Whether self-attention depends on positions only through their distances, which allows sequences
/// of any length.
constexpr bool by_distance(PositionKind kind) {
  return kind != PositionKind::sinusoidal && kind != PositionKind::learned &&
         kind != PositionKind::none;
}

}  // namespace heed

HEED_BEGIN

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
  PositionKind kind = PositionKind::sinusoidal;
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
  std::int64_t d = 0, farthest = 0;  ///< farthest: relative_shaw, maximum distance
  Tensor weight;                     ///< relative_shaw: [distances, d]; relative_xl: [d, d]
  Tensor u, v;                       ///< relative_xl: [d]

  LayerPositions() = default;
  LayerPositions(const ModelOptions& options, bool is_causal, Init& init);

  /// The bias of the projection to queries, keys and values. relative_xl adds u to the bias of the
  /// queries; other kinds return `bias`.
  Tensor projection_bias(const Tensor& bias) const;
  /// Rotates the first `heads` heads of each row of x. Each sequence begins at position `first`.
  /// Kinds other than rotary return x unchanged.
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
