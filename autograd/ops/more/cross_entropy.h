#pragma once
/// Cross-entropy of logits that are computed in chunks of rows; R-Drop; distillation.
#include "autograd/ops/basic.h"

HEED_BEGIN

/// cross_entropy of logits x Wᵀ + b, which are computed and discarded in chunks of rows, so that
/// the logits of only one chunk exist at a time.
Tensor projected_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               std::span<const std::int32_t> targets, real smoothing,
                               double divisor, LossCounts* counts = nullptr);
/// R-Drop: x has two rows for each target, r and r + targets.size(), which one model computed with
/// different dropout masks. The loss of a target is
///   (CE(p) + CE(q)) / 2 + alpha/4 (KL(p ‖ q) + KL(q ‖ p))
/// where p and q are the softmax of the two rows' logits. This is half of the paper's loss, so that
/// its scale is that of one pass. `counts` receives, for each target, the mean nll of its two rows
/// and `correct` of the first row.
/// Source: Liang et al., "R-Drop: Regularized Dropout for Neural Networks", 2021.
Tensor rdrop_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                           std::span<const std::int32_t> targets, real smoothing, real alpha,
                           double divisor, LossCounts* counts = nullptr);

/// The logits x Wᵀ + b of a teacher that a student imitates: one row for each target.
struct TeacherLogits {
  Array x;               ///< [targets, in], the input of the teacher's output layer
  Array weight, bias;    ///< [classes, in]; [classes] or none
  real share = 0.5;      ///< λ, the weight of the divergence in the loss
  real temperature = 1;  ///< T
};
/// Distillation: the loss of a target is (1 − λ) CE(p) + λ T² KL(q_T ‖ p_T), where
/// p_T = softmax(z / T) for the student's logits z, and q_T is the same for the teacher's logits,
/// which are constant. T² keeps the gradient of the divergence at the same scale for every T.
/// Source: Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015,
/// section 2.
Tensor distilled_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               std::span<const std::int32_t> targets, real smoothing,
                               const TeacherLogits& teacher, double divisor,
                               LossCounts* counts = nullptr);

HEED_END
