#pragma once
#include <vector>

#include "autograd/attention.h"

HEED_BEGIN

struct BigBirdOptions {
  std::int64_t block = 64;  ///< positions in a block
  std::int64_t global_blocks =
      2;  ///< the first blocks: they read everything, and everything reads them
  std::int64_t side_blocks = 1;    ///< a block reads itself and this many blocks on each side
  std::int64_t random_blocks = 3;  ///< and this many others, the same for every sequence
  bool causal = false;             ///< a query reads no later key, and chooses among earlier blocks
};

/// Sparse attention by blocks: global, window and random. Cost and memory are linear in the tokens, but
/// for the few global queries. With enough blocks it is full attention, to the bit.
/// Source: Zaheer et al., "Big Bird", 2020, section 2 and appendix D (internal global tokens).
class BigBirdPattern final : public Pattern {
 public:
  explicit BigBirdPattern(const BigBirdOptions& options);
  void stretches(const QueryBlock& block, Stretches& into) const override;

 private:
  using Blocks = std::vector<std::int64_t, ArenaAllocator<std::int64_t>>;
  /// The blocks of keys, ascending, that a block of queries reads, of `count`.
  Blocks read_by(std::int64_t queries, std::int64_t count) const;

  BigBirdOptions options_;
};
inline PatternPtr bigbird_pattern(const BigBirdOptions& options) {
  return std::make_shared<BigBirdPattern>(options);
}

HEED_END
