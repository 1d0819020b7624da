#pragma once
#include <fmt/format.h>

#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/more/attention/diagonals.h"

HEED_BEGIN

/// Attention with linear biases:   S_ij −= m_h |i − j|,   where i and j are the positions of query
/// and key. It replaces position embeddings and sets no limit on the length of a sequence. The
/// slopes m_h are fixed: 2^(−8 h/H) for h = 1 … H, if H, the number of heads, is a power of two;
/// otherwise the slopes for the largest power of two below H, followed by the first, third, …
/// slope for twice that power. For causal attention this is the paper's term; with keys on both
/// sides it is the symmetric form.
/// Source: Press et al., "Train Short, Test Long", 2022, section 3, and its published code.
struct Alibi final : ScoreTerm {
  /// The slope m_h for h = head + 1; `head` counts from 0.
  static real slope(std::int64_t head, std::int64_t heads) {
    std::int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    const auto ratio = [](std::int64_t number, std::int64_t of) {
      return std::exp2(-8.0 * static_cast<double>(number) / static_cast<double>(of));
    };
    return static_cast<real>(head < power ? ratio(head + 1, power)
                                          : ratio(2 * (head - power) + 1, 2 * power));
  }

  void add(const ScoreBlock& block, real* s) const override {
    const Diagonals all(block);
    std::vector<real, BlockAllocator<real>> length;  // |i − j| of each diagonal
    for (std::int64_t e = 0; e < all.count; ++e)
      length.push_back(static_cast<real>(std::abs(all.distance(e))));
    const real m = slope(block.head, block.heads);
    for (std::int64_t r = 0; r < block.rows; ++r)
      kernels::axpy(-m, length.data() + all.first(r), s + r * block.keys, block.keys);
  }
  TermFormula formula(const ScoreBlock& block) const override {
    return {"B_ij = −m |i − j|",
            block.keys == 1 ? "ALiBi"  // without a distance, m has no effect
                            : fmt::format("ALiBi, m = {:.6g}", slope(block.head, block.heads))};
  }
};

HEED_END
