#pragma once
/// Loops over one block of attention scores: `rows` queries by `cols` keys, rows contiguous.
#include <algorithm>
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// Which keys the rows of a block see: all of them, or (causal) row r the first `first + r + 1`.
/// `first` is below 0 where the block's first rows come before its first key.
struct Visible {
  bool causal = false;
  std::int64_t first = 0;
  std::int64_t count(std::int64_t row, std::int64_t cols) const {
    return causal ? std::clamp<std::int64_t>(first + row + 1, 0, cols) : cols;
  }
};

/// Scores to weights, in place: softmax over what each row sees, 0 elsewhere. lse[r · stride]
/// becomes the row's log Σ exp. A row that sees nothing becomes zeros, with lse −inf.
void attention_softmax(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                       real* lse, std::int64_t stride);
/// lse[r · stride] = log(exp(lse[r · stride]) + Σ exp(scores of the row)), over what the row sees:
/// begun with −inf, the sums of a row whose keys are taken a stretch at a time.
void attention_add_to_lse(const real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                          real* lse, std::int64_t stride);
/// The same weights again, from the scores and the lse that the forward pass left.
void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride);
/// dscores = weights ⊙ (dweights − delta[r]), 0 where hidden; may be in place on dweights.
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
