#pragma once
#include "data/batches/batch.h"
#include "nn/models/model.h"

HEED_BEGIN

/// A batch as a model reads it: views, so the batch must outlive them.
inline Rows rows_of(const Batch& batch) {
  const auto view = [](const Side& side) {
    return SideView{side.ids, side.offsets, side.features, side.width};
  };
  return {view(batch.source), view(batch.target), batch.labels};
}

/// Adds part to total.
inline void add_counts(LossCounts& total, const LossCounts& part) {
  total.loss += part.loss;
  total.nll += part.nll;
  total.tokens += part.tokens;
  total.correct += part.correct;
}

HEED_END
