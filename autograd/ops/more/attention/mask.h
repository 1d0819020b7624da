#pragma once
#include <functional>
#include <utility>

#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// Any mask: a query reads the keys for which `reads` returns true. Stretch n contains the n-th run
/// of consecutive keys that each query reads, so masks with few, long runs are fastest. `reads` is
/// called for every query-key pair of a block.
inline PatternPtr mask_pattern(
    std::function<bool(std::int64_t sequence, std::int64_t query, std::int64_t key)> reads) {
  return std::make_shared<Pattern>(
      [reads = std::move(reads)](const QueryBlock& block, Stretches& into) {
        std::vector<std::vector<KeyRange>> runs(block.rows);  // consecutive visible keys, per query
        std::size_t most = 0;
        for (std::int64_t r = 0; r < block.rows; ++r) {
          for (std::int64_t key = 0; key < block.keys; ++key) {
            if (!reads(block.sequence, block.first + r, key)) continue;
            if (runs[r].empty() || runs[r].back().end < key) runs[r].push_back({key, key});
            runs[r].back().end = key + 1;
          }
          most = std::max(most, runs[r].size());
        }
        for (std::size_t n = 0; n < most; ++n) {
          into.add(block, [&](std::int64_t i) {
            const std::vector<KeyRange>& row_runs = runs[i - block.first];
            return n < row_runs.size() ? row_runs[n] : KeyRange{};
          });
        }
      });
}

HEED_END
