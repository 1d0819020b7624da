#pragma once
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/more/attention/diagonals.h"

HEED_BEGIN

/// A trained bias for each bucket of distances and each head:   S_ij += B[bucket(i − j), head]
///   dB[b, head] = Σ dS_ij over all i, j with bucket(i − j) = b
/// Each bucket in the first half contains one short distance; in the second half, the index grows
/// with the logarithm of the distance, and the last bucket contains all distances from `farthest`
/// on. Bidirectional attention has two such sets of buckets: the first half of the table is for
/// keys at or before the query, the second half for keys after it.
/// Source: Raffel et al., "Exploring the Limits of Transfer Learning" (T5), 2020, section 2.1, and
/// its published code (32 buckets, distances up to 128).
struct DistanceBias final : ScoreTerm {
  Tensor table;           ///< B: [buckets, heads]
  bool causal;            ///< no query reads a later key
  std::int64_t farthest;  ///< all distances from this one on are in the last bucket

  DistanceBias(Tensor biases, bool is_causal, std::int64_t farthest_distance = 128)
      : table(std::move(biases)), causal(is_causal), farthest(farthest_distance) {
    const std::int64_t least = causal ? 2 : 4;
    if (table.shape().rank() != 2 || table.shape()[0] < least || table.shape()[0] % least != 0)
      fail(
          "[distance_bias] expected a table [buckets, heads] whose number of buckets is a positive "
          "multiple of {}, got {}",
          least, table.shape());
    if (farthest <= table.shape()[0] / 2)
      fail(
          "[distance_bias] expected a farthest distance above half the number of buckets, got {} "
          "for {} buckets",
          farthest, table.shape()[0]);
  }

  /// The row of the table for query position − key position.
  std::int64_t bucket(std::int64_t distance) const {
    const std::int64_t one_side = causal ? table.shape()[0] : table.shape()[0] / 2;
    const std::int64_t side = !causal && distance < 0 ? one_side : 0;
    const std::int64_t n = causal ? std::max<std::int64_t>(distance, 0) : std::abs(distance);
    const std::int64_t exact = one_side / 2;
    if (n < exact) return side + n;
    const double share = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                         std::log(static_cast<double>(farthest) / static_cast<double>(exact));
    const auto beyond = static_cast<std::int64_t>(share * static_cast<double>(one_side - exact));
    return side + std::min(exact + beyond, one_side - 1);
  }

  std::span<const Tensor> inputs() const override { return {&table, 1}; }

  void add(const ScoreBlock& block, real* s) const override {
    const Diagonals all(block);
    std::vector<real, BlockAllocator<real>> bias;  // the bias of each diagonal
    for (std::int64_t e = 0; e < all.count; ++e)
      bias.push_back(table.value().row(bucket(all.distance(e)))[block.head]);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      real* const row = s + r * block.keys;
      kernels::add(row, bias.data() + all.first(r), row, block.keys);
    }
  }
  void backward(const ScoreBlock& block, const real* ds, real* /*dq*/,
                std::span<const Grad> dinputs) const override {
    if (!dinputs[0]) return;
    const Diagonals all(block);
    std::vector<real, BlockAllocator<real>> total(all.count);  // the sum of dS along each diagonal
    for (std::int64_t r = 0; r < block.rows; ++r) {
      real* const from = total.data() + all.first(r);
      kernels::add(from, ds + r * block.keys, from, block.keys);
    }
    Array& sum = dinputs[0].sum();
    for (std::int64_t e = 0; e < all.count; ++e)
      sum.row(bucket(all.distance(e)))[block.head] += total[e];
  }
  TermFormula formula(const ScoreBlock&) const override {
    return {"B_ij = b[bucket(i − j)]", "a learned bias for each bucket of distances"};
  }
};

HEED_END
