#pragma once
#include <optional>
#include <span>
#include <vector>

#include "autograd/memory/block.h"
#include "data/batches/batch.h"
#include "nn/models/model.h"

HEED_BEGIN

static_assert(no_label == ignored_target);

/// Views of a side and of a batch as the input of a model. The side or batch must outlive its view.
inline SideView side_view(const Side& side) {
  return {side.ids, side.offsets, side.features, side.width};
}
inline ModelInput model_input(const Batch& batch) {
  return {side_view(batch.source), side_view(batch.target), batch.labels};
}
/// A shard, with its lanes in a segment memory, as the input of a model.
inline ModelInput model_input(const Batch& shard, Lanes lanes) {
  ModelInput input = model_input(shard);
  input.lanes = lanes;
  return input;
}
using LaneList = std::vector<Lanes, BlockAllocator<Lanes>>;
/// Begins a batch in the segment memory and returns the lanes of each shard. Without a segment
/// memory, returns a default Lanes for each shard.
inline LaneList lanes_of(std::span<const Batch> shards, std::optional<SegmentMemory>& memory) {
  LaneList all(shards.size());
  if (!memory) return all;
  std::int64_t count = 0, max_length = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    all[i] = {&*memory, count};
    count += shards[i].sequences();
    max_length = std::max(max_length, max_length_of(shards[i].target.offsets));
  }
  memory->begin(!shards.empty() && shards.front().continues, count, max_length);
  return all;
}

/// Adds the sums and counts of `part` to those of `total`, except `each`.
inline void add_counts(LossCounts& total, const LossCounts& part) {
  total.loss += part.loss;
  total.nll += part.nll;
  total.tokens += part.tokens;
  total.correct += part.correct;
}

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use model_input")]] inline ModelInput rows_of(const Batch& batch) {
  return model_input(batch);
}

HEED_END
