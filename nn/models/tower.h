#pragma once
#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/positions.h"

HEED_BEGIN

/// From token ids to rows: embedding, positions, dropout, a stack of blocks. The model that holds
/// it names its parts.
struct Tower {
  Embedding embedding;
  Positions positions;
  double dropout_rate = 0;
  Stack stack;

  /// n ids → [n, d]; the context's offsets are those of the ids.
  Tensor operator()(std::span<const std::int32_t> ids, const Context& context) const {
    const Tensor x = positions(embedding(ids), context.offsets, context.first_position());
    Pass& pass = context.pass;
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    Context inner = context;
    inner.terms = positions.terms;
    return stack(dropout(x, p, pass.next_key()), inner);
  }
};

HEED_END
