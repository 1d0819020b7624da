#pragma once
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// Sliding window: query i reads key i, the `back` keys before it and the `ahead` keys after it;
/// with ahead = 0, attention is causal. Cost and memory are linear in the number of tokens. After n
/// layers, a token depends on up to n · back tokens before it.
/// Source: Beltagy et al., "Longformer", 2020, section 3.1.
inline PatternPtr window_pattern(std::int64_t back, std::int64_t ahead) {
  if (back < 0 || ahead < 0)
    fail("[window_pattern] expected back and ahead of at least 0, got {} and {}", back, ahead);
  return std::make_shared<Pattern>([=](const QueryBlock& block, Stretches& into) {
    // Both limits are clipped to distances that exceed all those in the block, which prevents
    // overflow.
    const std::int64_t clipped_back = std::min(back, block.first + block.rows),
                       clipped_ahead = std::min(ahead, block.keys);
    into.add(block, [=](std::int64_t i) {
      return KeyRange{i - clipped_back, i + clipped_ahead + 1};
    });
  });
}

HEED_END
