#pragma once
/// Scaled dot-product attention as one op of heed's tape, with its own backward, and the entropy of
/// its weights.
///   S = Q Kᵀ / √d_k      Q: [m, d_k], K: [n, d_k]  scores S: [m, n]
///   P = softmax(S)                                 weights P: [m, n], rows sum to 1
///   O = P V              V: [n, d_v]               O: [m, d_v]
/// backward, from dO:
///   dV = Pᵀ dO,  dP = dO Vᵀ,  dS_ij = P_ij (dP_ij − Σ_l dP_il P_il),
///   dQ = dS K / √d_k,  dK = dSᵀ Q / √d_k
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

/// Whether the scores are divided by √d_k.
enum class Scaled { no, yes };

/// The factor of the scores of queries Q [m, d_k].
inline double score_factor(const Array& q, Scaled scaled) {
  // --- begin exercise score_factor: 1 / √d_k, or 1 if the scores are not scaled
  return scaled == Scaled::yes ? 1 / std::sqrt(static_cast<double>(q.cols())) : 1;
  // --- end exercise
}

/// The weights P [m, n] of queries Q [m, d_k] and keys K [n, d_k]. The softmax of each row of an Array
/// is `chapter2::softmax(scores).value()`.
inline Array weights_of(const Array& q, const Array& k, Scaled scaled = Scaled::yes) {
  // --- begin exercise weights_of: the scores, then their softmax
  const Array scores = times(product(q, k, false, true), score_factor(q, scaled));
  return chapter2::softmax(scores).value();
  // --- end exercise
}

/// The op: forward saves what backward needs.
struct Attention {
  Array q, k, v, p;  ///< p: the weights P

  Array forward(const Array& q_in, const Array& k_in, const Array& v_in) {
    for (const Array* x : {&q_in, &k_in, &v_in})
      if (x->shape().rank() != 2) heed::fail("[attention] expected matrices, got {}", x->shape());
    q = q_in, k = k_in, v = v_in;
    // --- begin exercise forward: save the weights in p, return P V
    p = weights_of(q, k);
    return product(p, v);
    // --- end exercise
  }

  /// From dO [m, d_v]. Adds to the gradients of the inputs that need one: `if (dv) dv.add(…)`.
  void backward(const Array& d_o, Grad dq, Grad dk, Grad dv) const {
    // --- begin exercise backward: dV, then dP, dS, and from dS the gradients dQ and dK
    if (dv) dv.add(product(p, d_o, true, false));
    if (!dq && !dk) return;
    const Array dp = product(d_o, v, false, true);
    Array ds(p.shape());
    for (std::int64_t r = 0; p.size() > 0 && r < p.rows(); ++r)
      chapter2::gradient_of_row(p.row(r), dp.row(r), 1, p.cols(), ds.row(r));
    const double factor = score_factor(q, Scaled::yes);
    if (dq) dq.add(times(product(ds, k), factor));
    if (dk) dk.add(times(product(ds, q, true, false), factor));
    // --- end exercise
  }
};

/// Attention of queries Q [m, d_k] to keys K [n, d_k] with values V [n, d_v]: O [m, d_v].
inline Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  return heed::apply(Attention{}, q, k, v);
}

/// The mean over the rows of the entropy −Σ_j P_ij ln P_ij, in nats: from 0, if each query reads one
/// key, to ln n, if it reads all alike. 0 ln 0 is 0.
inline double mean_entropy(const Array& weights) {
  // --- begin exercise mean_entropy: the entropy of each row, then their mean
  double sum = 0;
  for (const double w : weights.values()) {
    if (w > 0) sum -= w * std::log(w);
  }
  return sum / static_cast<double>(weights.rows());
  // --- end exercise
}

}  // namespace chapter3
