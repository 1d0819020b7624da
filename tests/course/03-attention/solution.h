#pragma once
/// Scaled dot-product attention as one op of heed's tape, with its own backward, and the entropy of
/// its weights.
///   S = q kᵀ / √d        q: [m, d], k: [n, d]      scores [m, n]
///   A = softmax(S)                                 weights [m, n], rows sum to 1
///   y = A v              v: [n, e]                 y: [m, e]
/// backward, from dy:
///   dA = dy vᵀ,  dv = Aᵀ dy,  dS = A ⊙ (dA − rows ⟨dA, A⟩),  dq = dS k / √d,  dk = dSᵀ q / √d
/// Source: Vaswani et al., "Attention Is All You Need", 2017, equation 1.
#include <cmath>
#include <cstdint>

#include "02-softmax/solution.h"
#include "autograd/ops/basic.h"

namespace chapter3 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// a b, aᵀ b or a bᵀ.
inline Array product(const Array& a, const Array& b, bool transpose_a = false,
                     bool transpose_b = false) {
  return heed::matmul(a, b, transpose_a, transpose_b).value();
}

/// factor · a
inline Array times(const Array& a, double factor) { return heed::scale(a, factor).value(); }

/// Whether the scores are divided by √d.
enum class Scaled { no, yes };

/// The factor of the scores of queries q [m, d].
inline double score_factor(const Array& q, Scaled scaled) {
  // --- begin exercise score_factor: 1 / √d, or 1 if the scores are not scaled
  return scaled == Scaled::yes ? 1 / std::sqrt(static_cast<double>(q.cols())) : 1;
  // --- end exercise
}

/// The weights A. `chapter2::softmax(scores).value()` is the softmax of each row.
inline Array weights_of(const Array& q, const Array& k, Scaled scaled = Scaled::yes) {
  // --- begin exercise weights_of: the scores, then their softmax
  const Array scores = times(product(q, k, false, true), score_factor(q, scaled));
  return chapter2::softmax(scores).value();
  // --- end exercise
}

/// The op: forward saves what backward needs.
struct Attention {
  Array q, k, v, weights;

  Array forward(const Array& q_in, const Array& k_in, const Array& v_in) {
    for (const Array* x : {&q_in, &k_in, &v_in})
      if (x->shape().rank() != 2) heed::fail("[attention] expected matrices, got {}", x->shape());
    q = q_in, k = k_in, v = v_in;
    // --- begin exercise forward: save the weights, return A v
    weights = weights_of(q, k);
    return product(weights, v);
    // --- end exercise
  }

  /// Adds to the gradients of the inputs that need one: `if (dq) dq.add(…)`.
  void backward(const Array& dy, Grad dq, Grad dk, Grad dv) const {
    // --- begin exercise backward: dv, then dA, dS, and from dS the gradients dq and dk
    if (dv) dv.add(product(weights, dy, true, false));
    if (!dq && !dk) return;
    const Array dweights = product(dy, v, false, true);
    Array dscores(weights.shape());
    for (std::int64_t r = 0; weights.size() > 0 && r < weights.rows(); ++r) {
      chapter2::gradient_of_row(weights.row(r), dweights.row(r), 1, weights.cols(), dscores.row(r));
    }
    const double factor = score_factor(q, Scaled::yes);
    if (dq) dq.add(times(product(dscores, k), factor));
    if (dk) dk.add(times(product(dscores, q, true, false), factor));
    // --- end exercise
  }
};

/// Attention of queries q [m, d] to keys k [n, d] with values v [n, e] → [m, e].
inline Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  return heed::apply(Attention{}, q, k, v);
}

/// The mean over the rows of the entropy −Σ_j A_ij ln A_ij, in nats: from 0, if each query reads one
/// key, to ln n, if it reads all alike. 0 ln 0 is 0.
inline double mean_entropy(const Array& weights) {
  // --- begin exercise mean_entropy: the entropy of each row, then their mean
  double sum = 0;
  for (const double a : weights.values()) {
    if (a > 0) sum -= a * std::log(a);
  }
  return sum / static_cast<double>(weights.rows());
  // --- end exercise
}

}  // namespace chapter3
