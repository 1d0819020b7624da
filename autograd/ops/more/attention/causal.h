#pragma once
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// Query i reads keys 0 … i.
struct CausalPattern final : Pattern {
  void stretches(const QueryBlock& block, Stretches& into) const override {
    into.add(block, [](std::int64_t i) { return KeyRange{0, i + 1}; });
  }
};
inline PatternPtr causal_pattern() {
  static const PatternPtr pattern = std::make_shared<CausalPattern>();
  return pattern;
}

HEED_END
