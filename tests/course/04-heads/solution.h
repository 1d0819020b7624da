#pragma once
/// Multi-head attention: h attentions side by side, each with its share of the width.
///   head_i = Attention(x W_iQ, y W_iK, y W_iV)        x: [n, d], y: [m, d], head_i: [n, d / h]
///   MultiHead(x, y) = Concat(head_1, …, head_h) W_O + b                              [n, d]
/// All W_iQ are columns of one matrix, as are all W_iK and all W_iV. So the projections of all heads
/// are one product, which is then split into heads.
/// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
#include <cmath>
#include <cstdint>

#include "autograd/ops/basic.h"

namespace chapter4 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// x [rows, d] → [heads, rows, d / heads]: matrix i of the result is the i-th block of d / heads
/// columns of x. Calls heed::fail with a message if `heads` does not divide d.
inline Array split_values(const Array& x, std::int64_t heads) {
  // --- begin exercise split_values: check that heads divides d, then move each value
  const std::int64_t rows = x.rows(), d = x.cols();
  if (heads < 1 || d % heads != 0) heed::fail("[split] {} heads do not divide width {}", heads, d);
  const std::int64_t width = d / heads;
  Array y({heads, rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < d; ++c) y.at({c / width, r, c % width}) = x.at({r, c});
  }
  return y;
  // --- end exercise
}

/// The inverse of split_values: x [heads, rows, width] → [rows, heads · width].
inline Array join_values(const Array& x) {
  // --- begin exercise join_values: matrix i becomes the i-th block of columns
  const std::int64_t heads = x.shape()[0], rows = x.shape()[1], width = x.shape()[2];
  Array y({rows, heads * width});
  for (std::int64_t i = 0; i < heads; ++i) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < width; ++c) y.at({r, i * width + c}) = x.at({i, r, c});
    }
  }
  return y;
  // --- end exercise
}

/// The op split. It moves values, so its backward moves them back.
struct Split {
  std::int64_t heads = 1;

  Array forward(const Array& x) const { return split_values(x, heads); }
  void backward(const Array& dy, Grad dx) const {  // dy: [heads, rows, d / heads]
    // --- begin exercise split_backward: dx.add(…)
    dx.add(join_values(dy));
    // --- end exercise
  }
};

/// The op join.
struct Join {
  std::int64_t heads = 1;

  Array forward(const Array& x) {
    heads = x.shape()[0];
    return join_values(x);
  }
  void backward(const Array& dy, Grad dx) const {  // dy: [rows, heads · width]
    if (dy.size() == 0) return;                    // no heads, for example
    // --- begin exercise join_backward: dx.add(…)
    dx.add(split_values(dy, heads));
    // --- end exercise
  }
};

inline Tensor split(const Tensor& x, std::int64_t heads) { return heed::apply(Split{heads}, x); }
inline Tensor join(const Tensor& x) { return heed::apply(Join{}, x); }

/// The parameters of a layer.
struct Layer {
  std::int64_t heads = 1;
  Tensor in_weight;   ///< [3 d, d]: rows [0, d) are all W_iQᵀ, then all W_iKᵀ, then all W_iVᵀ
  Tensor in_bias;     ///< [3 d]
  Tensor out_weight;  ///< [d, d]: W_Oᵀ
  Tensor out_bias;    ///< [d]
};

/// The heads before Concat: [heads, n, d / heads]. Queries come from x, keys and values from y.
/// heed::affine_rows projects with some rows of the matrix, and heed::attention, for operands with a
/// leading axis, attends in each of their matrices alone.
inline Tensor heads_of(const Tensor& x, const Tensor& y, const Layer& layer) {
  // --- begin exercise heads_of: project, split, attend
  const std::int64_t d = x.shape()[1];
  const auto project = [&](const Tensor& rows, std::int64_t part) {
    const Tensor all =
        heed::affine_rows(rows, layer.in_weight, layer.in_bias, part * d, (part + 1) * d);
    return split(all, layer.heads);
  };
  const Tensor q = project(x, 0), k = project(y, 1), v = project(y, 2);
  return heed::attention(q, k, v).output;
  // --- end exercise
}

/// The layer: [n, d].
inline Tensor multi_head(const Tensor& x, const Tensor& y, const Layer& layer) {
  // --- begin exercise multi_head: join the heads, then heed::affine
  return heed::affine(join(heads_of(x, y, layer)), layer.out_weight, layer.out_bias);
  // --- end exercise
}

/// What head i adds to the output, from heads [heads, n, width] and out_weight [d, d]: [n, d]. The
/// shares of all heads and the bias sum to the output, so Concat is only a way of writing a sum.
inline Array share_of(const Array& heads, const Array& out_weight, std::int64_t i) {
  // --- begin exercise share_of: head i times its part of W_O
  const std::int64_t width = heads.shape()[2];
  const Array head = heads.sliced(i, i + 1).reshaped({heads.shape()[1], width});
  const Tensor part = heed::slice(out_weight, 1, i * width, (i + 1) * width);  // [d, width]
  return heed::matmul(head, part, false, true).value();
  // --- end exercise
}

/// The size and the work of a layer. A product of [a, b] and [b, c] takes 2 a b c FLOPs; FLOPs of
/// anything else do not count.
struct Cost {
  std::int64_t parameters = 0, flops = 0;
};

/// Counted from the definition, for n queries and m keys of width d: what each head needs by itself,
/// with its own W_iQ, W_iK, W_iV [d, d / heads] and biases [d / heads], and then W_O and its bias.
inline Cost cost_of(std::int64_t n, std::int64_t m, std::int64_t d, std::int64_t heads) {
  // --- begin exercise cost_of: a loop over the heads, then W_O
  Cost cost;
  const std::int64_t width = d / heads;
  for (std::int64_t i = 0; i < heads; ++i) {
    cost.parameters += 3 * (d * width + width);
    cost.flops += 2 * (n + m + m) * d * width;  // queries of n rows, keys and values of m rows
    cost.flops += 2 * n * m * width;            // scores
    cost.flops += 2 * n * m * width;            // weights times values
  }
  cost.parameters += d * d + d;
  cost.flops += 2 * n * d * d;
  return cost;
  // --- end exercise
}

}  // namespace chapter4
