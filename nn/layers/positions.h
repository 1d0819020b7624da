#pragma once
#include "autograd/ops.h"
#include "nn/context.h"
#include "nn/parameters.h"

HEED_BEGIN

/// Adds to each row a vector that depends on its position in its sequence.
/// - sinusoidal: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(…)
///   (Vaswani et al. 2017, section 3.5)
/// - learned: rows of a trained table [max_positions, d]
struct Positions {
  PositionKind kind = PositionKind::sinusoidal;
  std::int64_t d = 0;
  Tensor weight;  ///< learned only

  Positions() = default;
  Positions(PositionKind position_kind, std::int64_t max_positions, std::int64_t d_model,
            Init& init)
      : kind(position_kind), d(d_model) {
    if (kind == PositionKind::learned) weight = init.table(max_positions, d);
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
