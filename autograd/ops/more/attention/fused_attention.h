#pragma once
/// Attention as one op, which saves no T × T matrix. options.h contains its components: heads, the
/// keys that a query reads, terms of the scores. basic.h declares attention composed of other ops.
#include <cstdint>
#include <span>

#include "autograd/ops/more/attention/options.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// Self-attention of concatenated sequences as one op, with the options of autograd/ops/more/attention/options.h.
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
