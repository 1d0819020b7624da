#pragma once
/// Attention, both composed of other ops and as one op. autograd/attention.h contains its
/// components: heads, the keys that a query reads, terms of the scores.
#include <cstdint>
#include <span>

#include "autograd/attention.h"
#include "autograd/tensor.h"

HEED_BEGIN

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

/// Self-attention of concatenated sequences as one op, with the options of autograd/attention.h.
/// offsets: [sequences + 1], the first row of each sequence, then the number of rows. The op saves
/// no T × T matrix: its memory is linear in the number of tokens. With `size` columns per head,
/// qkv [tokens, (heads + 2 key_heads) size] = q, k, v → [tokens, heads size].
Tensor self_attention(const Tensor& qkv, std::span<const std::int32_t> offsets,
                      const AttentionOptions& options);
/// Cross-attention as one op: the queries of sequence i read the keys of sequence i.
/// q [query tokens, heads size], kv [key tokens, 2 key_heads size] = k, v
/// → [query tokens, heads size].
Tensor cross_attention(const Tensor& q, const Tensor& kv,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets, const AttentionOptions& options);

HEED_END
