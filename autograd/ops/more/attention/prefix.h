#pragma once
#include <utility>

#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// The first rows of a sequence, its prefix, read one another; each later row reads the prefix and
/// the rows up to itself: query i of sequence s reads keys 0 … max(i, lengths[s] − 1).
/// Source: Raffel et al., "Exploring the Limits of Transfer Learning", 2020, section 3.2.1 (prefix
/// LM).
inline PatternPtr prefix_pattern(std::vector<std::int64_t> lengths) {
  return std::make_shared<Pattern>(
      [lengths = std::move(lengths)](const QueryBlock& block, Stretches& into) {
        if (block.sequence >= static_cast<std::int64_t>(lengths.size()))
          fail("[prefix_pattern] expected a prefix length for sequence {}, got {} lengths",
               block.sequence, lengths.size());
        const std::int64_t prefix = lengths[block.sequence];
        into.add(block, [=](std::int64_t i) { return KeyRange{0, std::max(prefix, i + 1)}; });
      });
}

HEED_END
