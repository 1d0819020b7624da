#pragma once
/// The optimizer of the Transformer: Adam, its learning rate with warmup, and clipping.
///   m ← β₁ m + (1 − β₁) g,         m̂ = m / (1 − β₁ᵗ)         t = 1, 2, …: the number of the step
///   v ← β₂ v + (1 − β₂) g²,        v̂ = v / (1 − β₂ᵗ)         each line for each entry alone
///   w ← w − lr m̂ / (√v̂ + ε)
///   lr = d^−½ min(t^−½, t warmup^−3/2)
///   g  ← g min(1, c / (‖g‖ + 10⁻⁶)),   ‖g‖: the norm of all gradients together
/// Sources: Kingma and Ba, "Adam", 2015, Algorithm 1; Vaswani et al., "Attention Is All You Need", 2017,
/// section 5.3; Pascanu et al., "On the Difficulty of Training Recurrent Neural Networks", 2013.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "autograd/ops/basic.h"

namespace chapter9 {

using heed::Array;

/// The parameters of a model, or their gradients in the same order.
using Arrays = std::vector<Array>;

/// The learning rate of step 1, 2, … of a model of width d.
inline double learning_rate(std::int64_t d, std::int64_t warmup, std::int64_t step) {
  // --- begin exercise learning_rate: two branches, of which the smaller one holds
  const auto width = static_cast<double>(d), w = static_cast<double>(warmup),
             s = static_cast<double>(step);
  return std::pow(width, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(w, -1.5));
  // --- end exercise
}

/// The norm of all gradients, as if they were one long vector.
inline double global_norm(const Arrays& gradients) {
  // --- begin exercise global_norm: the root of the sum of all squares
  double squares = 0;
  for (const Array& g : gradients) {
    for (const double x : g.values()) squares += x * x;
  }
  return std::sqrt(squares);
  // --- end exercise
}

/// The factor that limits the norm to max_norm. A smaller norm stays as it is. The 10⁻⁶ in the
/// denominator prevents a division by 0.
inline double clip_factor(double norm, double max_norm) {
  // --- begin exercise clip_factor: at most 1
  return std::min(1.0, max_norm / (norm + 1e-6));
  // --- end exercise
}

/// The gradients times one factor, as new arrays: `gradients` stay as they are.
inline Arrays clipped(const Arrays& gradients, double max_norm) {
  // --- begin exercise clipped: the same factor for all (heed::scale(g, factor).value())
  const double factor = clip_factor(global_norm(gradients), max_norm);
  Arrays result;
  for (const Array& g : gradients) result.push_back(heed::scale(g, factor).value());
  return result;
  // --- end exercise
}

/// Whether the moments are divided by 1 − βᵗ.
enum class Corrected { no, yes };

struct Adam {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  Corrected corrected = Corrected::yes;
  Arrays m = {}, v = {};  ///< first and second moments of each parameter, initially 0
  int t = 0;              ///< the number of steps so far

  /// Changes the weights. `gradients[i]` has the shape of `weights[i]`.
  void step(Arrays& weights, const Arrays& gradients, double lr) {
    for (std::size_t p = m.size(); p < weights.size(); ++p) {
      m.push_back(Array::zeros(weights[p].shape()));
      v.push_back(Array::zeros(weights[p].shape()));
    }
    // --- begin exercise step: count the step, then call `update` for each entry of each parameter
    ++t;
    for (std::size_t p = 0; p < weights.size(); ++p) {
      for (std::int64_t i = 0; i < weights[p].size(); ++i)
        update(lr, gradients[p].data()[i], weights[p].data()[i], m[p].data()[i], v[p].data()[i]);
    }
    // --- end exercise
  }

  /// One entry: its gradient g, its weight w and its moments.
  void update(double lr, double g, double& w, double& m_i, double& v_i) const {
    // --- begin exercise update: the moments, their correction if `corrected` is yes, the weight
    m_i = beta1 * m_i + (1 - beta1) * g;
    v_i = beta2 * v_i + (1 - beta2) * g * g;
    const bool yes = corrected == Corrected::yes;
    const double mean = yes ? m_i / (1 - std::pow(beta1, t)) : m_i;
    const double square = yes ? v_i / (1 - std::pow(beta2, t)) : v_i;
    w -= lr * mean / (std::sqrt(square) + eps);
    // --- end exercise
  }
};

/// How far Adam moves one weight in each of its first steps: |w after − w before| for the gradients
/// g₁, g₂, … and the learning rates of the same steps.
inline std::vector<double> first_updates(const std::vector<double>& gradients,
                                         const std::vector<double>& rates, Corrected corrected) {
  // --- begin exercise first_updates: one Adam for all steps, a weight of shape [1]
  Adam adam{.corrected = corrected};
  Arrays weight{Array::zeros({1})};
  std::vector<double> sizes;
  for (std::size_t s = 0; s < gradients.size(); ++s) {
    const double before = weight[0].data()[0];
    adam.step(weight, {Array::full({1}, gradients[s])}, rates[s]);
    sizes.push_back(std::abs(weight[0].data()[0] - before));
  }
  return sizes;
  // --- end exercise
}

}  // namespace chapter9
