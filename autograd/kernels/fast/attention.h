#pragma once
/// Loops over one tile of attention scores: `rows` queries by `cols` keys, rows contiguous.
#include <algorithm>
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// The division of columns into heads: q has heads · size columns, k and v have key_heads · size
/// each. Query head h reads key head h / (heads / key_heads): grouped-query attention (Ainslie et
/// al. 2023).
struct HeadLayout {
  std::int64_t heads = 1, key_heads = 1, size = 0;
  std::int64_t key_head(std::int64_t head) const { return head / (heads / key_heads); }
};

/// Keys [begin, end), as positions in the sequence.
struct KeyRange {
  std::int64_t begin = 0, end = 0;
};

/// The keys that each row of a tile reads: row r reads rows[r]; the tile's column 0 is key `first`.
struct Visible {
  const KeyRange* rows = nullptr;
  std::int64_t first = 0;
  /// The columns that row r reads, out of `cols`.
  KeyRange columns(std::int64_t r, std::int64_t cols) const {
    const std::int64_t begin = std::clamp<std::int64_t>(rows[r].begin - first, 0, cols);
    return {begin, std::clamp(rows[r].end - first, begin, cols)};
  }
};

/// Calls body(r, values, n) for each row r of a tile, with the values of the n keys that the row
/// reads. Sets the row's values for all other keys to 0.
template <class Body>
void for_each_row(real* tile, std::int64_t rows, std::int64_t cols, Visible visible, Body body) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyRange reads = visible.columns(r, cols);
    real* const row = tile + r * cols;
    std::fill(row, row + reads.begin, real(0));
    std::fill(row + reads.end, row + cols, real(0));
    body(r, row + reads.begin, reads.end - reads.begin);
  }
}

/// Converts scores to weights in place: softmax over the keys that a row reads, 0 for all others.
/// lse[r · stride] becomes log Σ exp of the scores of these keys. A row that reads no key becomes
/// 0, with lse −inf.
void attention_softmax(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                       real* lse, std::int64_t stride);
/// lse[r · stride] = log(exp(lse[r · stride]) + Σ exp(scores of the row)) over the keys that the
/// row reads. Called for each tile of a row, with lse initially −inf, it computes the lse of the
/// whole row.
void attention_add_to_lse(const real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                          real* lse, std::int64_t stride);
/// Converts scores to weights in place, given the lse of each whole row; 0 for keys that the row
/// does not read.
void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride);
/// dscores = weights ⊙ (dweights − delta[r]), where delta[r] = ⟨weights, dweights⟩ over all keys of
/// the row; 0 for keys that the row does not read. dscores may be dweights.
void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta);

namespace plain {
void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride);
void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta);
}  // namespace plain
}  // namespace kernels
HEED_END
