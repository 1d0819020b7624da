#pragma once
#include <vector>

#include "autograd/attention.h"

HEED_BEGIN

struct BigBirdOptions {
  std::int64_t block = 64;  ///< number of positions in a block
  /// Number of global blocks: the first ones, which read all keys and are read by all queries.
  std::int64_t global_blocks = 2;
  std::int64_t side_blocks = 1;    ///< number of neighbour blocks read on each side
  std::int64_t random_blocks = 3;  ///< number of random blocks read, the same in all sequences
  bool causal = false;  ///< no query reads a later key, and no random block is a later one
};

/// Sparse attention by blocks: global, window and random. Cost and memory are linear in the number
/// of tokens, except for the few global queries. With enough blocks, it is bitwise equal to full
/// attention.
/// Source: Zaheer et al., "Big Bird", 2020, section 2 and appendix D (internal global tokens).
class BigBirdPattern final : public Pattern {
 public:
  explicit BigBirdPattern(const BigBirdOptions& options);
  void stretches(const QueryBlock& block, Stretches& into) const override;

 private:
  using Blocks = std::vector<std::int64_t, ArenaAllocator<std::int64_t>>;
  /// The blocks of keys, ascending, that a block of queries reads, out of `count` blocks.
  Blocks read_by(std::int64_t queries, std::int64_t count) const;

  BigBirdOptions options_;
};
inline PatternPtr bigbird_pattern(const BigBirdOptions& options) {
  return std::make_shared<BigBirdPattern>(options);
}

HEED_END
