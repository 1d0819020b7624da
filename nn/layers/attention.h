#pragma once
#include "autograd/attention.h"
#include "nn/context.h"
#include "nn/layers/linear.h"

HEED_BEGIN

/// Which rows a query sees: all rows of its sequence; its own row and those before it; or those of
/// the memory.
enum class Sees { all, past, memory };

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2), with PyTorch's parameters: one matrix
/// [3 d, d] makes queries, keys and values. Head h owns columns [h d / heads, (h + 1) d / heads) of
/// each:
///   out_h = softmax(q_h k_hᵀ / √(d / heads)) v_h,     output = out_proj(out_1 … out_heads)
struct MultiHeadAttention {
  Tensor in_proj_weight;  ///< [3 d, d]: rows for q, then k, then v
  Tensor in_proj_bias;    ///< [3 d]
  Linear out_proj;        ///< [d, d]
  std::int64_t d, heads;
  double dropout_rate;
  Sees sees;
  PatternPtr pattern;  ///< which keys a query reads

  MultiHeadAttention(const ModelOptions& options, Sees which, Init& init);

  /// x: [rows, d] → [rows, d]. With a cache, the keys and values of x are added to it. Throws Error
  /// if a memory is needed and there is none, or if a cache is used while a tape is recording.
  Tensor operator()(const Tensor& x, const Context& context) const;
  Parameters parameters() const;

 private:
  /// Rows [begin, end) of in_proj, applied: [rows, d] → [rows, end − begin].
  Tensor projected(const Tensor& x, std::int64_t begin, std::int64_t end) const;
  AttentionOptions attention_options(const Context& context) const;
  Tensor whole_sequences(const Tensor& x, const Context& context) const;
  Tensor new_rows(const Tensor& x, const Context& context) const;
};

HEED_END
