#pragma once
/// The basic ops: those of the reference Transformer and others of the same kind. The source files
/// beside this header contain the struct of each op: formula, forward and backward; more/ contains all other ops.
/// Error messages begin with the op's name and usually have the form "[op] expected …, got …".
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "autograd/tensor.h"

HEED_BEGIN

// ---- elementwise functions (elementwise.cpp) -----------------------------------------------

Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       ///< x Φ(x), exact
Tensor gelu_tanh(const Tensor& x);  ///< approximation of gelu by tanh
Tensor sigmoid(const Tensor& x);
Tensor silu(const Tensor& x);

// ---- elementwise arithmetic, with broadcasting as in NumPy (arithmetic.cpp) ----------------

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& x, real factor);  ///< factor · x

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }

inline Tensor operator+(const Tensor& a, real b) { return add(a, Array::scalar(b)); }
inline Tensor operator-(const Tensor& a, real b) { return sub(a, Array::scalar(b)); }
inline Tensor operator*(const Tensor& a, real b) { return scale(a, b); }
inline Tensor operator/(const Tensor& a, real b) { return scale(a, 1 / b); }
inline Tensor operator+(real a, const Tensor& b) { return add(Array::scalar(a), b); }
inline Tensor operator-(real a, const Tensor& b) { return sub(Array::scalar(a), b); }
inline Tensor operator*(real a, const Tensor& b) { return scale(b, a); }
inline Tensor operator/(real a, const Tensor& b) { return div(Array::scalar(a), b); }

// ---- matrix products (matmul.cpp, affine.cpp) ----------------------------------------------

/// a: [..., m, k] (or [..., k, m] with trans_a), b: [..., k, n] (or [..., n, k] with trans_b)
/// → [..., m, n]. Leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);
/// x: [..., in], weight: [out, in], bias: [out] or undefined → [..., out]: x Wᵀ + b.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// affine with rows [begin, end) of weight and bias only, so that q, k and v can share one matrix:
/// [..., in] → [..., end − begin].
Tensor affine_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t begin,
                   std::int64_t end);

// ---- movement of values (shape.cpp, embedding.cpp) -----------------------------------------

Tensor reshape(const Tensor& x, const Shape& shape);
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
/// Entries [begin, end) of an axis.
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);
/// Rows of table [vocabulary, d] selected by ids, times factor → [number of ids, d].
Tensor embedding(const Tensor& table, std::span<const std::int32_t> ids, real factor = 1);
/// Entries of the first axis: [n, …] → [ids, …]. An id may occur any number of times.
Tensor index_select(const Tensor& x, std::span<const std::int32_t> ids);

// ---- softmax and norm of each row (softmax.cpp, layer_norm.cpp) -----------------------------

/// Softmax over the last axis. mask, if defined, is added to x first and broadcasts to it; −inf
/// masks an entry. A row with all entries masked becomes zeros and has no gradient.
Tensor softmax(const Tensor& x, const Array& mask = {});
/// Normalises each row of x [..., n] to mean 0 and variance 1, then multiplies by gain [n] and adds
/// bias [n]. gain and bias may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps = real(1e-5));

// ---- attention (attention.cpp) -------------------------------------------------------------

struct AttentionResult {
  Tensor output;   ///< [..., Tq, dv]
  Tensor weights;  ///< [..., Tq, Tk], the result of softmax
};
/// Scaled dot-product attention, composed of other ops: softmax(q kᵀ / √d + mask) v for
/// q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv] and an additive mask that broadcasts to
/// [..., Tq, Tk].
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Array& mask = {});
/// A mask [t, t] for `attention`: 0 on and below the diagonal, −inf above it.
Array causal_mask(std::int64_t t);

// ---- loss (cross_entropy.cpp) --------------------------------------------------------------

/// Sums and counts over tokens. A loss op adds those of its tokens to `counts`, if it is not null.
struct LossCounts {
  double loss = 0;  ///< sum of the tokens' losses, before division by the divisor
  double nll = 0;   ///< negative log-likelihood: Σ −log p[target]
  std::int64_t tokens = 0;
  std::int64_t correct = 0;             ///< number of tokens whose target is the logits' argmax
  std::vector<double>* each = nullptr;  ///< −log p[target] of each token is appended to it

  /// Adds the sums and counts of other tokens.
  void add(const LossCounts& other) {
    loss += other.loss;
    nll += other.nll;
    tokens += other.tokens;
    correct += other.correct;
  }
};
/// A row with this target, such as padding or a token of a prompt, is excluded from the loss, its
/// gradient and its counts. PyTorch's ignore_index has the same value.
inline constexpr std::int32_t ignored_target = -100;
/// The mean label-smoothed cross-entropy of the rows that are not ignored, from logits
/// [rows, classes]. Throws if there are no such rows.
Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets,
                     real smoothing = 0, LossCounts* counts = nullptr);
/// The sum of the rows' label-smoothed cross-entropy, divided by `divisor`; logits [rows, classes].
Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, real smoothing,
                     double divisor, LossCounts* counts = nullptr);

HEED_END
