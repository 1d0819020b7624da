#pragma once
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// Query i reads keys 0 … i.
inline PatternPtr causal_pattern() {
  static const auto pattern =
      std::make_shared<const Pattern>([](const QueryBlock& block, Stretches& into) {
        into.add(block, [](std::int64_t i) { return KeyRange{0, i + 1}; });
      });
  return pattern;
}

HEED_END
