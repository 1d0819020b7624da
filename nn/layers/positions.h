#pragma once
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/ops/attention/rotary.h"
#include "nn/context.h"
#include "nn/option_kinds.h"
#include "nn/parameters.h"

namespace heed {

/// The ways to tell a model the positions of its tokens. A new one needs a value and a name here,
/// and its part in Positions or LayerPositions below; the tests then include it.
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

/// Whether self-attention reads the positions, as distances: no sequence is then too long.
constexpr bool by_distance(PositionKind kind) {
  return kind != PositionKind::sinusoidal && kind != PositionKind::learned &&
         kind != PositionKind::none;
}

}  // namespace heed

HEED_BEGIN

/// Positions that a stack of blocks shares: a vector added to each row, or a term added to the scores
/// of every self-attention. (Cross-attention has none: its keys have the positions of another sequence.)
/// - sinusoidal: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(…)
///   (Vaswani et al. 2017, section 3.5)
/// - learned: rows of a trained table [max_positions, d]
/// - alibi: a penalty that grows with the distance (autograd/ops/attention/alibi.h)
/// - relative_t5: a trained bias for each bucket of distances (autograd/ops/attention/distance_bias.h)
struct Positions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t d = 0;
  Tensor weight;                    ///< learned: [max_positions, d]; relative_t5: [buckets, heads]
  std::vector<ScoreTermPtr> terms;  ///< of every self-attention

  Positions() = default;
  /// `causal`: no token reads a later one.
  Positions(const ModelOptions& options, bool causal, Init& init);

  /// x: [rows, d] → [rows, d]. Each sequence begins at position `first`. Throws unless the offsets
  /// increase from 0 to the number of rows of x, and if a sequence is longer than a learned table.
  Tensor operator()(const Tensor& x, Offsets offsets, std::int64_t first = 0) const;
  Parameters parameters() const {
    return weight.defined() ? Parameters{{"weight", weight}} : Parameters{};
  }
};

/// Positions that each self-attention layer has for itself:
/// - rotary: queries and keys are rotated by their positions (autograd/ops/attention/rotary.h)
/// - relative_shaw: a trained key for each distance up to a limit
/// - relative_xl: keys of distances are sinusoids times a matrix, and two trained vectors u and v are
///   added to the query where it meets keys and where it meets distances (both:
///   autograd/ops/attention/relative_keys.h)
/// Other kinds leave the layer as it is.
struct LayerPositions {
  PositionKind kind = PositionKind::none;
  bool causal = false;
  RotaryOptions rotary;
  std::int64_t d = 0, farthest = 0;  ///< relative_shaw: the distances that have keys of their own
  Tensor weight;                     ///< relative_shaw: [distances, d]; relative_xl: [d, d]
  Tensor u, v;                       ///< relative_xl: [d]

  LayerPositions() = default;
  LayerPositions(const ModelOptions& options, bool is_causal, Init& init);

  /// The bias of the projection to queries, keys and values: u is added to the queries'.
  Tensor projection_bias(const Tensor& bias) const;
  /// x: rows of heads, of which the first `heads` are rotated. Each sequence begins at position `first`.
  Tensor rotated(const Tensor& x, std::int64_t heads, Offsets offsets, std::int64_t first) const;
  /// Adds the layer's own terms, for sequences of at most `longest` rows. With a cache, the keys of
  /// distances are taken from there.
  void add_terms(std::vector<ScoreTermPtr>& terms, std::int64_t longest, LayerCache* cache) const;
  Parameters parameters() const;
};

/// Rows [first, first + n) of the sinusoidal table: [n, d].
Array sinusoids(std::int64_t first, std::int64_t n, std::int64_t d);

HEED_END
