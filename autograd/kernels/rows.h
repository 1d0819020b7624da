#pragma once
/// Kernels that process one row of n values, or each row of a [rows, cols] matrix.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// y = softmax(x) of one row of n values. -inf masks a value; a row that contains only -inf becomes
/// zeros. Values of +inf share the weight evenly, as in the limit; a NaN makes the whole row NaN. y
/// may be x. Returns log Σ exp(x) (-inf for a row that contains only -inf). In float, both results
/// are within 4 units in the last place, except that a logarithm close to 0 may have an error of
/// 2^-49 |max x|.
real softmax_row(const real* x, real* y, std::int64_t n);
/// log Σ exp(x) of one row.
real log_sum_exp_row(const real* x, std::int64_t n);
/// dx = y ⊙ (dy − ⟨dy, y⟩) of one row, computed in double; dx may be dy.
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n);

/// Computes for each row mean[r], rstd[r] = 1/√(var + eps) (biased variance) and y = (x − mean)
/// rstd · gain + bias. gain and bias may be null, which counts as 1 and 0. Computed in double. A
/// row of variance 0 becomes bias, even for eps = 0. If a row contains infinities, y is the limit
/// as they grow together (±1 for them, 0 for the rest, normalised), mean is infinite or NaN and
/// rstd is 0, so that the gradient is NaN.
void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols);
/// With x̂ = (x − mean) rstd and g = dy ⊙ gain:
/// dx = rstd (g − mean(g) − x̂ mean(g ⊙ x̂)); dgain += Σ_r dy ⊙ x̂; dbias += Σ_r dy. Each of the
/// three targets may be null; dx may be dy. x̂ and all sums are in double. The mean is recomputed
/// in double, because the rounding error of `mean` may exceed the deviations if all values of a row
/// are far from 0.
void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                     const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                     std::int64_t cols);
struct RowLoss {
  double loss;   ///< smoothed loss
  double nll;    ///< −log p[t]
  bool correct;  ///< t is the index of the first maximum, and that logit is not -inf
};
/// Label-smoothed cross-entropy of one row of n logits against a target class, as PyTorch defines
/// it: loss = (1 − ε) (−log p[t]) + ε/n Σ_j (−log p[j]), p = softmax(logits). If `with_grad`,
/// overwrites the logits with scale · d loss / d logits = scale (p − (1 − ε) onehot(t) − ε/n).
///
/// -inf masks a class: as the target, or with ε > 0, it makes the loss +inf. So does any logit of
/// +inf, because training must not continue from it; the gradient is then that of softmax's
/// limit. NaN makes the losses and the whole gradient NaN and `correct` false. Losses near 0 keep
/// their relative accuracy. n > 0, 0 ≤ target < n.
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad);

}  // namespace kernels
HEED_END
