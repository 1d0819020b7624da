#pragma once
/// More kernels that process rows.
#include <cstdint>

#include "autograd/kernels/rows.h"

HEED_BEGIN
namespace kernels {

/// y = x − log Σ exp(x) of one row, the logarithm of softmax_row's result; in float, within 4 units
/// in the last place. y may be x. A masked value remains -inf, even if all are masked; a NaN makes
/// the whole row NaN.
void log_softmax_row(const real* x, real* y, std::int64_t n);
/// dx = dy − exp(y) Σ dy of one row, computed in double; dx may be dy. Where y is -inf, dy is
/// ignored and dx is 0.
void log_softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n);

/// y = x rrms · gain, rrms[r] = 1/√(mean(x²) + eps) (Zhang and Sennrich 2019).
/// gain may be null. Infinities and eps = 0 are treated as in layer_norm.
void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols);
/// With x̂ = x rrms and g = dy ⊙ gain: dx = rrms (g − x̂ mean(g ⊙ x̂)); dgain += Σ_r dy ⊙ x̂.
/// Either target may be null; dx may be dy.
void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy, real* dx,
                   real* dgain, std::int64_t rows, std::int64_t cols);

/// Returns KL(p ‖ q) + KL(q ‖ p) for two rows of n finite log-probabilities. If `with_grad`,
/// overwrites each row with scale times the gradient with respect to its logits. With d = log p −
/// log q, a = KL(p ‖ q) = Σ p d and b = KL(q ‖ p) = −Σ q d, the gradients are p (d − a) + p − q and
/// −q (d + b) + q − p.
double symmetric_kl_row(real* log_p, real* log_q, std::int64_t n, real scale, bool with_grad);

}  // namespace kernels
HEED_END
