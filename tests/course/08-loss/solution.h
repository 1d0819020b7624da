#pragma once
/// Cross-entropy with label smoothing as one op of heed's tape, perplexity, and calibration.
///   q_j  = (1 − ε) [j = t] + ε / n                  the smoothed distribution of the target t
///   L_r  = −Σ_j q_j log p_j,   p = softmax(z_r)     one row of logits z, with n classes
///   L    = 1/N Σ_r L_r                              the mean over the N rows that have a target
///   dz_r = dL / N (p − q)                           0 in rows without a target
/// Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016, section 7.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "02-softmax/solution.h"
#include "autograd/ops/basic.h"

namespace chapter8 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// The targets of the rows: a class, or `heed::ignored_target` in a row of padding.
using Targets = std::vector<std::int32_t>;

/// The smoothed distribution q of the target over n classes.
inline void smoothed_target(std::int32_t target, double smoothing, std::int64_t n, double* q) {
  if (target < 0 || target >= n)
    heed::fail("[smoothed_target] expected a class in [0, {}), got {}: is the row padding?", n,
               target);
  // --- begin exercise smoothed_target: ε / n for every class, and 1 − ε more for the target
  for (std::int64_t j = 0; j < n; ++j) q[j] = smoothing / static_cast<double>(n);
  q[target] += 1 - smoothing;
  // --- end exercise
}

/// −Σ_j q_j log p_j for one row of n logits. No exponent may be above 0, so that none overflows, and
/// no logarithm may be that of a p that has become 0:
///   log p_j = (z_j − m) − log Σ_l exp(z_l − m),   m = max_l z_l
inline double loss_of_row(const double* z, const double* q, std::int64_t n) {
  // --- begin exercise loss_of_row: the logarithm of the sum first; a class with q = 0 adds nothing
  const double largest = *std::max_element(z, z + n);
  double sum = 0, loss = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += std::exp(z[j] - largest);
  for (std::int64_t j = 0; j < n; ++j) {
    if (q[j] > 0) loss -= q[j] * (z[j] - largest - std::log(sum));
  }
  return loss;
  // --- end exercise
}

/// The gradient of loss_of_row with respect to z.
inline void gradient_of_row(const double* z, const double* q, std::int64_t n, double* dz) {
  // --- begin exercise gradient_of_row: p − q; chapter2::softmax_of_row(z, 1, n, dz) gives p
  chapter2::softmax_of_row(z, 1, n, dz);
  for (std::int64_t j = 0; j < n; ++j) dz[j] -= q[j];
  // --- end exercise
}

/// The number of rows that have a target.
inline std::int64_t counted(const Targets& targets) {
  return std::ranges::count_if(targets, [](auto t) { return t != heed::ignored_target; });
}

/// The op: the mean loss of the rows of z that have a target.
struct SmoothedLoss {
  Targets targets;
  double smoothing = 0;
  Array z;

  Array forward(const Array& logits) {
    const auto rows = static_cast<std::int64_t>(targets.size());
    if (logits.shape().rank() != 2 || logits.rows() != rows || counted(targets) == 0)
      heed::fail("[smoothed_loss] expected logits [{}, classes] and a target that is not ignored",
                 rows);
    z = logits;
    std::vector<double> q(static_cast<std::size_t>(z.cols()));
    double loss = 0;
    // --- begin exercise forward: the sum of loss_of_row over the rows with a target, then the mean
    for (std::int64_t r = 0; r < z.rows(); ++r) {
      const std::int32_t target = targets[static_cast<std::size_t>(r)];
      if (target == heed::ignored_target) continue;
      smoothed_target(target, smoothing, z.cols(), q.data());
      loss += loss_of_row(z.row(r), q.data(), z.cols());
    }
    loss /= static_cast<double>(counted(targets));
    // --- end exercise
    return Array::scalar(loss);
  }

  /// dy is the gradient with respect to the loss: a scalar.
  void backward(const Array& dy, Grad dz) const {
    Array g = Array::zeros(z.shape());
    std::vector<double> q(static_cast<std::size_t>(z.cols()));
    // --- begin exercise backward: gradient_of_row in the rows with a target, times dy / N
    const double factor = dy.item() / static_cast<double>(counted(targets));
    for (std::int64_t r = 0; r < z.rows(); ++r) {
      const std::int32_t target = targets[static_cast<std::size_t>(r)];
      if (target == heed::ignored_target) continue;
      smoothed_target(target, smoothing, z.cols(), q.data());
      gradient_of_row(z.row(r), q.data(), z.cols(), g.row(r));
      for (std::int64_t j = 0; j < z.cols(); ++j) g.row(r)[j] *= factor;
    }
    // --- end exercise
    dz.add(g);
  }
};

/// The mean smoothed loss of logits [rows, classes], a scalar.
inline Tensor smoothed_loss(const Tensor& logits, const Targets& targets, double smoothing) {
  return heed::apply(SmoothedLoss{targets, smoothing, {}}, logits);
}

/// The perplexity: e to the power of the mean of −log p[target], in nats, without smoothing.
inline double perplexity(const Array& logits, const Targets& targets) {
  // --- begin exercise perplexity: one line with smoothed_loss
  return std::exp(smoothed_loss(logits, targets, 0).item());
  // --- end exercise
}

/// The expected calibration error of probabilities p [rows, classes]. A row's confidence is its
/// largest p, and it is right if that is the p of its target. The N rows that have a target fall into
/// `bins` intervals [b/bins, (b + 1)/bins) of the confidence; a confidence of 1 belongs to the last:
///   Σ_b n_b / N |share of right rows in b − mean confidence in b|,   n_b: the number of rows in b
inline double calibration_error(const Array& p, const Targets& targets, int bins) {
  // --- begin exercise calibration_error: for each bin the sum of (1 if right, else 0) − confidence
  std::vector<double> difference(static_cast<std::size_t>(bins), 0.0);
  for (std::int64_t r = 0; r < p.rows(); ++r) {
    if (targets[static_cast<std::size_t>(r)] == heed::ignored_target) continue;
    const double* const best = std::max_element(p.row(r), p.row(r) + p.cols());
    const bool right = best - p.row(r) == targets[static_cast<std::size_t>(r)];
    const int bin = std::min(static_cast<int>(*best * bins), bins - 1);
    difference[static_cast<std::size_t>(bin)] += (right ? 1 : 0) - *best;
  }
  double error = 0;
  for (const double d : difference) error += std::abs(d) / static_cast<double>(counted(targets));
  return error;
  // --- end exercise
}

/// Given: a linear classifier, x W with W [width, classes], trained on the rows of x by `steps` steps
/// of gradient descent. Returns W. With fewer rows than parameters it learns every row by heart.
inline Array trained(const Array& x, const Targets& targets, std::int64_t classes, double smoothing,
                     int steps, double rate) {
  Array w = Array::zeros({x.cols(), classes});
  for (int step = 0; step < steps; ++step) {
    const Tensor variable = Tensor::variable(w);
    const auto gradients =
        heed::backward(smoothed_loss(heed::matmul(x, variable), targets, smoothing));
    w = heed::sub(w, heed::scale(gradients[variable], rate)).value();
  }
  return w;
}

}  // namespace chapter8
