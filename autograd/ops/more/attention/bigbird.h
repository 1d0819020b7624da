#pragma once
#include <vector>

#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

struct BigBirdOptions {
  std::int64_t block = 64;  ///< number of positions in a block
  /// Number of global blocks at the start of a sequence. They read all keys and are read by all
  /// queries.
  std::int64_t global_blocks = 2;
  std::int64_t side_blocks = 1;  ///< number of neighbouring blocks read on each side
  /// Number of random blocks drawn, with replacement, for each block of queries. The draws depend
  /// only on the index of the block and the length of the sequence.
  std::int64_t random_blocks = 3;
  bool causal = false;  ///< queries read no later keys, and no later block is drawn
};

/// Block-sparse attention with global, window and random blocks. Cost and memory are linear in the
/// number of tokens, because only the queries of the global blocks read all keys. With enough
/// blocks, it is bitwise equal to full attention.
/// Source: Zaheer et al., "Big Bird", 2020, section 2 and appendix D (internal global tokens).
class BigBirdPattern final : public Pattern {
 public:
  explicit BigBirdPattern(const BigBirdOptions& options);
  void stretches(const QueryBlock& block, Stretches& into) const override;

 private:
  using Blocks = std::vector<std::int64_t, BlockAllocator<std::int64_t>>;
  /// The indices, in ascending order, of the blocks of keys that are read by the block of queries
  /// with the index `queries`; there are `count` blocks of keys.
  Blocks read_by(std::int64_t queries, std::int64_t count) const;

  BigBirdOptions options_;
};
inline PatternPtr bigbird_pattern(const BigBirdOptions& options) {
  return std::make_shared<BigBirdPattern>(options);
}

HEED_END
