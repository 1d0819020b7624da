#pragma once
/// A batch: sequences of any length laid end to end. There is no padding and no pad token.
#include <cstdint>
#include <vector>

namespace heed {

/// Sequence i of a side owns tokens [offsets[i], offsets[i+1]). For a language model the source
/// side is empty (no tokens, no offsets).
struct Batch {
  std::vector<std::int32_t> source;          ///< token ids, each sequence ending in </s>
  std::vector<std::int32_t> source_offsets;  ///< n + 1 entries, from 0 to source.size()
  std::vector<std::int32_t> target_in;       ///< what the decoder reads: <s> y1 … yn
  std::vector<std::int32_t> target_out;      ///< what it shall predict:  y1 … yn </s>
  std::vector<std::int32_t> target_offsets;  ///< n + 1 entries, for both target_in and target_out
  std::vector<std::int64_t> samples;         ///< which samples of the dataset these are

  std::int64_t sequences() const {
    return target_offsets.empty() ? 0 : static_cast<std::int64_t>(target_offsets.size()) - 1;
  }
};

/// What one token of each side costs, in any unit.
struct TokenCost {
  double source = 1, target = 1;
};

}  // namespace heed
