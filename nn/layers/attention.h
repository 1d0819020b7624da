#pragma once
#include <span>

#include "nn/cache.h"
#include "nn/layers/linear.h"
#include "nn/pass.h"

HEED_BEGIN

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2), with PyTorch's parameters: one matrix
/// [3 d, d] makes queries, keys and values. Sequences lie end to end; offsets say where each
/// begins.
struct MultiHeadAttention {
  Tensor in_proj_weight;  ///< [3 d, d]: rows for q, then k, then v
  Tensor in_proj_bias;    ///< [3 d]
  Linear out_proj;        ///< [d, d]
  std::int64_t d = 0, heads = 1;
  double dropout_rate = 0;

  MultiHeadAttention() = default;
  MultiHeadAttention(std::int64_t d_model, std::int64_t head_count, double dropout, Init& init);

  /// x: [tokens, d] → [tokens, d]; each sequence attends to itself, backwards only where causal.
  Tensor self(const Tensor& x, std::span<const std::int32_t> offsets, bool causal,
              Pass& pass) const;
  /// Sequence i of x attends to sequence i of memory.
  Tensor cross(const Tensor& x, const Tensor& memory, std::span<const std::int32_t> offsets,
               std::span<const std::int32_t> memory_offsets, Pass& pass) const;
  /// Keys and values of memory, side by side: [memory tokens, 2 d].
  Tensor keys_values(const Tensor& memory) const;

  /// One more token for every hypothesis: x is [hypotheses, d]; its keys and values join the cache.
  Tensor self_step(const Tensor& x, SelfCache& cache, const Ancestry& ancestry) const;
  /// Hypothesis i attends to the rows of sequence `sentence[i]` of cached keys and values.
  Tensor cross_step(const Tensor& x, const Tensor& cached,
                    std::span<const std::int32_t> memory_offsets,
                    std::span<const std::int32_t> sentence) const;

  Parameters parameters() const;
};

HEED_END
