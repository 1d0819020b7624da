#pragma once
/// Attention without softmax: time and memory are linear in the number of tokens, and a decoding
/// step costs the same at every position.
#include <cstdint>
#include <span>

#include "autograd/ops/more/attention/options.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// qkv [tokens, (heads + 2 key_heads) size] = q, k, v of concatenated sequences
/// → [tokens, heads size]. If `causal`, a row reads itself and the earlier rows of its sequence;
/// otherwise, it reads all rows of its sequence. Of the options, only heads and key_heads are used.
Tensor linear_attention(const Tensor& qkv, std::span<const std::int32_t> offsets, bool causal,
                        const AttentionOptions& options);

/// Causal linear attention for one new row at a time, in decoding.
class LinearAttentionStep {
 public:
  /// `q_columns` is heads · size.
  LinearAttentionStep(const AttentionOptions& options, std::int64_t q_columns)
      : layout_(options.layout("linear_attention_step", q_columns, false)) {}

  /// The number of values in a state; the caller initialises them to zero.
  std::int64_t state_size() const { return layout_.key_heads * layout_.size * (layout_.size + 1); }
  /// q, out: [heads · size]; kv: [2 · key_heads · size], the new row's keys, then its values. Adds
  /// the row to the state, then computes out from the state.
  void operator()(const real* q, const real* kv, real* state, real* out) const;

 private:
  HeadLayout layout_;
};

HEED_END
