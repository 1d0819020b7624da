#pragma once
/// Every op, one line each. The struct behind each line, with its formula, forward and backward, is
/// in ops/. Shapes broadcast as in NumPy where noted; errors read "[op] expected …, got …".
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "autograd/attention.h"
#include "autograd/base/random.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/tensor.h"

HEED_BEGIN

inline constexpr int all_axes = std::numeric_limits<int>::max();

// ---- ops/arithmetic.cpp: with broadcasting -------------------------------------------------
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& x, real factor);  ///< factor · x

// ---- ops/elementwise.cpp -------------------------------------------------------------------
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       ///< x Φ(x), exact
Tensor gelu_tanh(const Tensor& x);  ///< its approximation by tanh
Tensor sigmoid(const Tensor& x);
Tensor silu(const Tensor& x);

// ---- ops/reduce.cpp ------------------------------------------------------------------------
Tensor sum(const Tensor& x, int axis = all_axes, bool keep_axis = false);
Tensor mean(const Tensor& x, int axis = all_axes, bool keep_axis = false);

// ---- ops/shape.cpp -------------------------------------------------------------------------
Tensor reshape(const Tensor& x, const Shape& shape);
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);
Tensor concat(std::span<const Tensor> parts, int axis);

// ---- ops/matmul.cpp, ops/affine.cpp --------------------------------------------------------
/// a: [..., m, k] (or [..., k, m] with trans_a), b likewise; leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);
/// x: [..., in], weight: [out, in], bias: [out] or undefined → [..., out]: x Wᵀ + b.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// The same with only rows [begin, end) of weight and bias, so that q, k and v can share one
/// matrix.
Tensor affine_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t begin,
                   std::int64_t end);

/// dropout(f(x Wᵀ + b)), fused: less is computed and, for relu, only the result is kept.
Tensor affine_map(kernels::Map f, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  real p = 0, const RandomKey& key = {});

// ---- ops/softmax.cpp: over the last axis ---------------------------------------------------
/// mask, if defined, is added to x first and broadcasts to it; −inf hides an entry. A row with
/// all entries hidden gives zeros (softmax) or −inf (log_softmax) and has no gradient.
Tensor softmax(const Tensor& x, const Array& mask = {});
Tensor log_softmax(const Tensor& x, const Array& mask = {});

// ---- ops/norm.cpp: over the last axis ------------------------------------------------------
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5));
Tensor rms_norm(const Tensor& x, const Tensor& gain, real eps = real(1e-5));

// ---- ops/embedding.cpp ---------------------------------------------------------------------
/// Rows of table [vocabulary, d] selected by ids, times factor → [ids, d].
Tensor embedding(const Tensor& table, std::span<const std::int32_t> ids, real factor = 1);

// ---- ops/dropout.cpp -----------------------------------------------------------------------
/// Zeroes each value with probability p and scales the rest by 1/(1 − p); p = 0 returns x itself.
Tensor dropout(const Tensor& x, real p, const RandomKey& key);
/// residual + dropout(x), fused.
Tensor dropout_add(const Tensor& x, const Tensor& residual, real p, const RandomKey& key);

// ---- ops/attention.cpp, ops/fused_attention.cpp --------------------------------------------
struct AttentionResult {
  Tensor output;   ///< [..., Tq, d]
  Tensor weights;  ///< [..., Tq, Tk], after softmax
};
/// Plain composed scaled dot-product attention: softmax(q kᵀ / √d + mask) v, on [..., T, d].
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Array& mask = {});
/// A mask for `attention`: 0 on and below the diagonal, −inf above: [t, t].
Array causal_mask(std::int64_t t);

/// One op, for sequences that lie end to end; attention.h has its options: heads, which keys a
/// query reads, terms of the scores. offsets: [sequences + 1], where each sequence begins. It never
/// stores a T × T matrix: memory is linear in the tokens. With `size` columns per head:
/// Self-attention: qkv [tokens, (heads + 2 key_heads) size] = q, k, v → [tokens, heads size].
Tensor self_attention(const Tensor& qkv, std::span<const std::int32_t> offsets,
                      const AttentionOptions& options);
/// Sequence i of q [query tokens, heads size] reads sequence i of kv [key tokens, 2 key_heads size]
/// = k, v → [query tokens, heads size].
Tensor cross_attention(const Tensor& q, const Tensor& kv,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets, const AttentionOptions& options);

// ---- ops/cross_entropy.cpp -----------------------------------------------------------------
/// What a loss counted besides its value.
struct LossCounts {
  double loss = 0;  ///< Σ over tokens, with label smoothing, not normalised
  double nll = 0;   ///< Σ −log p[target]
  std::int64_t tokens = 0;
  std::int64_t correct = 0;  ///< tokens whose target had the largest logit
};
/// Σ_rows label-smoothed cross-entropy / normalizer, of logits [rows, classes].
Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, real smoothing,
                     double normalizer, LossCounts* counts = nullptr);
/// The same for logits = x Wᵀ + b, computed and discarded in chunks of rows, so that the whole
/// matrix of logits never exists.
Tensor projected_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               std::span<const std::int32_t> targets, real smoothing,
                               double normalizer, LossCounts* counts = nullptr);

HEED_END

#include "autograd/operators.h"  // IWYU pragma: export
