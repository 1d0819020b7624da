#pragma once
#include "autograd/ops/more/attention/diagonals.h"

HEED_BEGIN

/// A key for each distance:   S_ij += c ⟨q_i + w, R[i − j]⟩,   where c is the scale of the scores
///   dq_i += c Σ_j dS_ij R[i − j],   dR[δ] = c Σ_{i − j = δ} dS_ij (q_i + w),
///   dw = c Σ_ij dS_ij R[i − j]
/// R and w have one part for each head. The rows of R are the keys of the distances
/// [first, first + n); a distance outside this range reads the nearest row.
/// - Shaw et al. 2018 (equation 4): R is a trained table of the distances −k … k, and w = 0. Their
///   second table, added to the values, is omitted: it made no difference in their section 4.3.
/// - Transformer-XL (Dai et al. 2019, section 3.3) replaces ⟨q_i, k_j⟩ by
///   ⟨q_i + u, k_j⟩ + ⟨q_i + v, R[i − j]⟩. With queries q_i + u, this is the term with w = v − u.
class RelativeKeys final : public ScoreTerm {
 public:
  /// keys: R [n, heads · size], n ≥ 1. shift: w [heads · size] or undefined.
  RelativeKeys(const Tensor& keys, std::int64_t first_distance, const Tensor& shift = {});

  std::span<const Tensor> inputs() const override { return inputs_; }
  void add(const ScoreBlock& block, real* s) const override;
  void backward(const ScoreBlock& block, const real* ds, real* dq,
                std::span<const Grad> dinputs) const override;
  TermFormula formula(const ScoreBlock& block) const override;

 private:
  bool shifted() const { return inputs_.size() == 2; }
  /// The row of R for a distance.
  std::int64_t row_of(std::int64_t distance) const;
  /// The head's keys, one for each diagonal of the block: [diagonals, size].
  Array keys_of(const ScoreBlock& block) const;
  /// The head's q + w: [rows, size].
  Array queries_of(const ScoreBlock& block) const;

  std::vector<Tensor> inputs_;
  std::int64_t first_;
};

HEED_END
