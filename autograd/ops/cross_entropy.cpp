#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops/shared/loss.h"

HEED_BEGIN

void require_targets(const char* op, std::int64_t rows, std::int64_t classes,
                     std::span<const std::int32_t> targets, real smoothing, double divisor) {
  if (static_cast<std::int64_t>(targets.size()) != rows) {
    fail("[{}] expected {} targets, got {}", op, rows, targets.size());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if ((targets[i] < 0 || targets[i] >= classes) && targets[i] != ignored_target) {
      fail("[{}] expected targets in [0, {}), got {} at row {}", op, classes, targets[i], i);
    }
  }
  if (!(smoothing >= 0 && smoothing <= 1))
    fail("[{}] expected smoothing in [0, 1], got {}", op, smoothing);
  if (!(divisor > 0)) fail("[{}] expected a divisor above 0, got {}", op, divisor);
}

LossCounts row_losses(Array& logits, const std::int32_t* targets, real smoothing, real factor,
                      bool with_grad, std::vector<double>* each) {
  LossCounts counts;
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    if (targets[r] == ignored_target) {
      if (with_grad) std::fill_n(logits.row(r), logits.cols(), real(0));
      continue;
    }
    const kernels::RowLoss row = kernels::cross_entropy_row(
        logits.row(r), logits.cols(), targets[r], smoothing, factor, with_grad);
    counts.loss += row.loss;
    counts.nll += row.nll;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each != nullptr) each->push_back(row.nll);
  }
  return counts;
}

Array times_cotangent(const Array& x, real factor) {
  if (factor == 1) return x;
  Array y(x.shape());
  kernels::scale(factor, x.data(), y.data(), x.size());
  return y;
}

namespace {

/// loss = −1/N Σ_r ⟨q_r, log p_r⟩,  p_r = softmax(z_r),  q_r = (1 − ε) onehot(t_r) + ε/n
/// dz_r = dloss/N (p_r − q_r)                                                    z: [rows, n]
/// where N is the divisor, and r runs over the rows whose target is not ignored_target; all other
/// rows have dz_r = 0. As the loss is usually the last op of a graph, forward also computes the
/// gradient (for dloss = 1), while the row is in cache.
/// Source: Szegedy et al., "Rethinking the Inception architecture", 2016, section 7.
struct CrossEntropy {
  std::span<const std::int32_t> targets;  // read in forward only
  real smoothing = 0;
  double divisor = 1;
  bool with_grad = false;
  LossCounts* counts = nullptr;
  Array dlogits;

  Array forward(const Array& logits) {
    if (logits.shape().rank() != 2)
      fail("[cross_entropy] expected logits [rows, classes], got {}", logits.shape());
    require_targets("cross_entropy", logits.rows(), logits.cols(), targets, smoothing, divisor);
    Array work = logits.clone();
    const LossCounts c = row_losses(work, targets.data(), smoothing, static_cast<real>(1 / divisor),
                                    with_grad, counts != nullptr ? counts->each : nullptr);
    if (counts != nullptr) counts->add(c);
    if (with_grad) dlogits = std::move(work);
    return Array::scalar(static_cast<real>(c.loss / divisor));
  }
  void backward(const Array& dy, Grad dx) const {
    if (dx) dx.add(times_cotangent(dlogits, dy.item()));
  }
};

}  // namespace

Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, real smoothing,
                     LossCounts* counts) {
  const auto ignored = std::ranges::count(targets, ignored_target);
  const auto counted = static_cast<std::int64_t>(targets.size()) - ignored;
  if (counted == 0)
    fail("[cross_entropy] expected at least one target that is not ignored, got none among {}",
         targets.size());
  return cross_entropy(logits, targets, smoothing, static_cast<double>(counted), counts);
}

Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, real smoothing,
                     double divisor, LossCounts* counts) {
  CrossEntropy op;
  op.targets = targets;
  op.smoothing = smoothing;
  op.divisor = divisor;
  op.with_grad = recording() && logits.needs_grad();
  op.counts = counts;
  return apply(std::move(op), logits);
}

HEED_END
