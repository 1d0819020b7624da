#pragma once
/// Scores grouped by the distance between query and key, for terms that depend on the positions
/// only through this distance.
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// The distances i − j between the queries i and keys j of a block. Scores of equal distance lie on
/// a diagonal; diagonal 0 is that of the last query and the first key. The keys of row r lie, in
/// order, on the diagonals [first(r), first(r) + keys).
struct Diagonals {
  std::int64_t rows, count, farthest;

  explicit Diagonals(const ScoreBlock& block)
      : rows(block.rows),
        count(block.rows + block.keys - 1),
        farthest(block.query + block.rows - 1 - block.key) {}

  std::int64_t distance(std::int64_t diagonal) const { return farthest - diagonal; }
  std::int64_t first(std::int64_t row) const { return rows - 1 - row; }
};

HEED_END
