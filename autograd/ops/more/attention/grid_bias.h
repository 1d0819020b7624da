#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// The square windows of an image, each a sequence of patches. Windows at the edge may be smaller.
/// All images of a batch are partitioned identically, so sequence s of the batch is window s mod
/// the number of windows.
struct GridWindows {
  std::int64_t side = 1;              ///< number of patches along the side of a full window
  std::vector<std::int32_t> offsets;  ///< [windows + 1], index of each window's first patch
  std::vector<std::int32_t> y, x;     ///< row and column of each patch in the image, by window

  std::int64_t windows() const { return std::ssize(offsets) - 1; }
  /// The number of possible relative positions of two patches of a window.
  std::int64_t differences() const { return (2 * side - 1) * (2 * side - 1); }
};

/// A trained bias for each head and each relative position of two patches (relative position bias):
///   S_ij += B[(y_i − y_j + w − 1) (2 w − 1) + x_i − x_j + w − 1, head]      w: side of a window
///   dB[b, head] = Σ dS_ij over all i, j whose score uses row b of B
/// Source: Liu et al., "Swin Transformer", 2021, section 3.2.
struct GridBias final : ScoreTerm {
  Tensor table;  ///< B: [(2 w − 1)², heads]
  std::shared_ptr<const GridWindows> grid;

  GridBias(Tensor biases, std::shared_ptr<const GridWindows> windows)
      : table(std::move(biases)), grid(std::move(windows)) {
    if (table.shape().rank() != 2 || table.shape()[0] != grid->differences())
      fail("[grid_bias] expected a table [{}, heads], got {}", grid->differences(), table.shape());
  }

  std::span<const Tensor> inputs() const override { return {&table, 1}; }

  void add(const ScoreBlock& block, real* s) const override {
    const real* const bias = table.value().data() + block.head;
    const std::int64_t heads = table.shape()[1];
    for_each_pair(block, [&](std::int64_t score, std::int64_t difference) {
      s[score] += bias[difference * heads];
    });
  }
  void backward(const ScoreBlock& block, const real* ds, real* /*dq*/,
                std::span<const Grad> dinputs) const override {
    if (!dinputs[0]) return;
    real* const sum = dinputs[0].sum().data() + block.head;
    const std::int64_t heads = table.shape()[1];
    for_each_pair(block, [&](std::int64_t score, std::int64_t difference) {
      sum[difference * heads] += ds[score];
    });
  }
  TermFormula formula(const ScoreBlock&) const override {
    return {"B_ij = b[y_i − y_j, x_i − x_j]",
            "a learned bias for each relative position of two patches"};
  }

 private:
  /// Calls f(score, row) for each score of the block: its index and that of its row in the table.
  template <class F>
  void for_each_pair(const ScoreBlock& block, F f) const {
    const std::int32_t first = grid->offsets[block.sequence % grid->windows()];
    const std::int64_t row = 2 * grid->side - 1, centre = (grid->side - 1) * (row + 1);
    const auto place = [&](std::int64_t position) {
      return grid->y[first + position] * row + grid->x[first + position];
    };
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const std::int64_t query = place(block.query + i) + centre;
      for (std::int64_t j = 0; j < block.keys; ++j)
        f(i * block.keys + j, query - place(block.key + j));
    }
  }
};

HEED_END
