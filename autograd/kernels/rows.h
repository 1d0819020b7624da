#pragma once
/// Kernels that treat every row of a [rows, cols] matrix alike.
#include <cstdint>

#include "autograd/real.h"

HEED_BEGIN
namespace kernels {

/// y = softmax(x) of one row of n values. -inf is a mask; a row of nothing but -inf gives zeros.
/// Returns log Σ exp(x) (-inf for such a row). y may be x.
real softmax_row(const real* x, real* y, std::int64_t n);
/// log Σ exp(x) of one row.
real log_sum_exp_row(const real* x, std::int64_t n);
/// dx = y ⊙ (dy − ⟨dy, y⟩) of one row; dx may be dy.
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n);

/// Per row: mean[r], rstd[r] = 1/√(var + eps) (biased variance), y = (x − mean) rstd · gain + bias.
/// gain and bias may be null (1 and 0).
void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols);
/// With x̂ = (x − mean) rstd and g = dy ⊙ gain:
/// dx = rstd (g − mean(g) − x̂ mean(g ⊙ x̂)); dgain += Σ_r dy ⊙ x̂; dbias += Σ_r dy. Each of the three
/// targets may be null.
void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                     const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                     std::int64_t cols);
/// y = x rrms · gain, rrms[r] = 1/√(mean(x²) + eps) (Zhang and Sennrich 2019).
void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols);
void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy, real* dx,
                   real* dgain, std::int64_t rows, std::int64_t cols);

/// Label-smoothed cross-entropy of one row of n logits against a target class, as PyTorch defines
/// it: loss = (1 − ε) (−log p[t]) + ε/n Σ_j (−log p[j]), p = softmax(logits). Overwrites the logits
/// with scale · d loss / d logits = scale (p − (1 − ε) onehot(t) − ε/n) where `with_grad`.
struct RowLoss {
  double loss;   ///< with smoothing
  double nll;    ///< −log p[t]
  bool correct;  ///< t is the (first) largest logit
};
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad);

}  // namespace kernels
HEED_END
