#pragma once
/// Masks: which key a query may read. A mask is added to the scores before softmax,
///   P = softmax(q kᵀ / √w + M),        M = 0 where a query reads a key, −∞ where it does not,
/// so that the weight of a hidden key is exactly 0 and the other weights of the row sum to 1. A row
/// with every key hidden has the weights 0 and the gradient 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "02-softmax/solution.h"
#include "autograd/ops/basic.h"

namespace chapter5 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// −∞, the mask of a key that a query does not read.
inline constexpr double hidden = -std::numeric_limits<double>::infinity();

/// Lengths of sequences.
using Lengths = std::vector<std::int64_t>;

/// [n, n]: query i reads the keys 0 … i, those before it and its own.
inline Array causal(std::int64_t n) {
  // --- begin exercise causal: 0 or hidden for each pair of a query and a key
  Array mask({n, n});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) mask.at({i, j}) = j <= i ? 0 : hidden;
  }
  return mask;
  // --- end exercise
}

/// For a batch of sequences that are padded at the end to n tokens: no query reads padding.
/// [batch, 1, 1, n], whose axes are sequence, head, query and key: it broadcasts to scores
/// [batch, heads, n, n].
inline Array padding(const Lengths& lengths, std::int64_t n) {
  // --- begin exercise padding: 0 or hidden for each key of each sequence
  const auto batch = static_cast<std::int64_t>(lengths.size());
  Array mask({batch, 1, 1, n});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t j = 0; j < n; ++j) {
      mask.at({b, 0, 0, j}) = j < lengths[static_cast<std::size_t>(b)] ? 0 : hidden;
    }
  }
  return mask;
  // --- end exercise
}

/// For the decoder: a query reads neither later tokens nor padding. [batch, 1, n, n]
inline Array decoder_mask(const Lengths& lengths, std::int64_t n) {
  // --- begin exercise decoder_mask: both masks; heed::add broadcasts, and its .value() is an Array
  return heed::add(causal(n), padding(lengths, n)).value();
  // --- end exercise
}

/// Without padding: the sequences stand one after the other in t rows, the sum of the lengths. A query
/// reads the tokens of its own sequence, up to its own. [t, t]
inline Array packed(const Lengths& lengths) {
  // --- begin exercise packed: a causal mask for each sequence, and hidden everywhere else
  std::int64_t rows = 0;
  for (const std::int64_t length : lengths) rows += length;
  Array mask = Array::full({rows, rows}, hidden);
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = first; i < first + length; ++i) {
      for (std::int64_t j = first; j <= i; ++j) mask.at({i, j}) = 0;
    }
    first += length;
  }
  return mask;
  // --- end exercise
}

/// The weights of one row of n masked scores z, of which some or all are −∞.
inline void weights_of_row(const double* z, std::int64_t n, double* y) {
  // --- begin exercise weights_of_row: what is z_i − max z if every z_i is −∞?
  if (n == 0) return;
  if (*std::max_element(z, z + n) == hidden) {
    std::fill(y, y + n, 0.0);
  } else {
    chapter2::softmax_of_row(z, 1, n, y);
  }
  // --- end exercise
}

/// softmax(x + mask) over the last axis. The mask broadcasts to x.
struct MaskedSoftmax {
  Array mask, y;

  Array forward(const Array& x) {
    const Array z = heed::add(x, mask).value();
    if (z.shape() != x.shape())
      heed::fail("[masked_softmax] a mask {} does not broadcast to {}", mask.shape(), x.shape());
    y = Array(x.shape());
    for (std::int64_t r = 0; y.size() > 0 && r < y.rows(); ++r)
      weights_of_row(z.row(r), y.cols(), y.row(r));
    return y;
  }
  /// The Jacobian of a row is diag(y) − y yᵀ, also with a mask: it is 0 wherever y is.
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    for (std::int64_t r = 0; g.size() > 0 && r < g.rows(); ++r)
      chapter2::gradient_of_row(y.row(r), dy.row(r), 1, g.cols(), g.row(r));
    dx.add(g);
  }
};

inline Tensor masked_softmax(const Tensor& x, const Array& mask) {
  return heed::apply(MaskedSoftmax{mask, {}}, x);
}

/// Attention with a mask that broadcasts to the scores: q [..., m, w], k [..., n, w], v [..., n, e]
/// → [..., m, e].
inline Tensor masked_attend(const Tensor& q, const Tensor& k, const Tensor& v, const Array& mask) {
  // --- begin exercise masked_attend: heed::matmul, heed::scale and masked_softmax; w is q.shape()[-1]
  const double factor = 1 / std::sqrt(static_cast<double>(q.shape()[-1]));
  const Tensor scores = heed::scale(heed::matmul(q, k, false, true), factor);
  return heed::matmul(masked_softmax(scores, mask), v);
  // --- end exercise
}

}  // namespace chapter5
