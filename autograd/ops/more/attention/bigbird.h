#pragma once
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
PatternPtr bigbird_pattern(const BigBirdOptions& options);

HEED_END
