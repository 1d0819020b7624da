#pragma once
/// Attention, composed and as one op. autograd/attention.h has its components: heads, the keys that
/// a query reads, terms of the scores.
#include <cstdint>
#include <span>

#include "autograd/attention.h"
#include "autograd/tensor.h"

HEED_BEGIN

struct AttentionResult {
  Tensor output;   ///< [..., Tq, d]
  Tensor weights;  ///< [..., Tq, Tk], the result of softmax
};
/// Scaled dot-product attention, composed of other ops: softmax(q kᵀ / √d + mask) v, on [..., T, d].
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Array& mask = {});
/// A mask for `attention`: 0 on and below the diagonal, −inf above: [t, t].
Array causal_mask(std::int64_t t);

/// One op for concatenated sequences; attention.h has its options: heads, the keys that a
/// query reads, terms of the scores. offsets: [sequences + 1], the first row of each sequence. The
/// op never stores a T × T matrix: its memory is linear in the number of tokens. With `size`
/// columns per head:
/// Self-attention: qkv [tokens, (heads + 2 key_heads) size] = q, k, v → [tokens, heads size].
Tensor self_attention(const Tensor& qkv, std::span<const std::int32_t> offsets,
                      const AttentionOptions& options);
/// Sequence i of q [query tokens, heads size] reads sequence i of kv [key tokens, 2 key_heads size]
/// = k, v → [query tokens, heads size].
Tensor cross_attention(const Tensor& q, const Tensor& kv,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets, const AttentionOptions& options);

HEED_END
