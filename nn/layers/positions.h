#pragma once
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/ops.h"
#include "autograd/ops/attention/alibi.h"
#include "nn/context.h"
#include "nn/options.h"
#include "nn/parameters.h"

namespace heed {

/// The ways to tell a model the positions of its tokens. A new one needs a value and a name here,
/// and its part in Positions below; the tests then include it.
enum class PositionKind : int { sinusoidal, learned, alibi, none };
constexpr auto names_of(PositionKind) {
  return enum_names<PositionKind>("sinusoidal", "learned", "alibi", "none");
}

}  // namespace heed

HEED_BEGIN

/// Positions, as a vector added to each row or as a term added to the scores of self-attention:
/// - sinusoidal: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(…)
///   (Vaswani et al. 2017, section 3.5)
/// - learned: rows of a trained table [max_positions, d]
/// - alibi: a term that falls with the distance between query and key (Press et al. 2022);
///   symmetric in an encoder. Attention to a memory has none: its positions are another sequence's.
struct Positions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t d = 0;
  Tensor weight;                    ///< learned only
  std::vector<ScoreTermPtr> terms;  ///< of every self-attention

  Positions() = default;
  Positions(PositionKind position_kind, std::int64_t max_positions, std::int64_t d_model,
            Init& init)
      : kind(position_kind), d(d_model) {
    if (kind == PositionKind::learned) weight = init.table(max_positions, d);
    if (kind == PositionKind::alibi) terms.push_back(std::make_shared<Alibi>());
  }

  /// x: [rows, d] → [rows, d]. Each sequence begins at position `first`.
  Tensor operator()(const Tensor& x, Offsets offsets, std::int64_t first = 0) const;
  Parameters parameters() const {
    return weight.defined() ? Parameters{{"weight", weight}} : Parameters{};
  }
};

/// Rows [first, first + n) of the sinusoidal table: [n, d].
Array sinusoids(std::int64_t first, std::int64_t n, std::int64_t d);

HEED_END
