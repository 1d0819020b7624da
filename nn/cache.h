#pragma once
/// What decoding remembers, so that a step costs one token and not the whole sentence again.
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/memory/array.h"

HEED_BEGIN

/// What self-attention of one layer looks back on: keys_values[t] holds keys and values of position
/// t, a row a hypothesis that lived then: [hypotheses at t, 2 d]. Rows never move; who descends from
/// whom is the Ancestry's to say.
struct SelfCache {
  std::vector<Array> keys_values;
};

/// For every live hypothesis, its row at each position so far. One for all layers: when a beam
/// search keeps, drops or copies hypotheses, only these numbers are rearranged.
class Ancestry {
 public:
  explicit Ancestry(std::int64_t hypotheses = 0) : rows_(static_cast<std::size_t>(hypotheses)) {}
  std::int64_t hypotheses() const { return static_cast<std::int64_t>(rows_.size()); }
  /// The rows of hypothesis i, one for each position.
  std::span<const std::int32_t> of(std::int64_t i) const {
    return rows_[static_cast<std::size_t>(i)];
  }
  /// Every hypothesis grows by a token: hypothesis i will be row i of the new position.
  void grow() {
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].push_back(static_cast<std::int32_t>(i));
  }
  /// New hypothesis i continues old hypothesis parents[i].
  void select(std::span<const std::int32_t> parents) {
    std::vector<std::vector<std::int32_t>> chosen;
    chosen.reserve(parents.size());
    for (const std::int32_t p : parents) chosen.push_back(rows_[static_cast<std::size_t>(p)]);
    rows_ = std::move(chosen);
  }

 private:
  std::vector<std::vector<std::int32_t>> rows_;
};

HEED_END
