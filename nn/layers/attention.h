#pragma once
#include "autograd/ops/more/attention/options.h"
#include "nn/context.h"
#include "nn/layers/mixer.h"
#include "nn/layers/positions.h"
#include "nn/linear.h"

HEED_BEGIN

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2), with PyTorch's parameters: one matrix
/// projects to queries, keys and values. Head h has columns [h d / heads, (h + 1) d / heads) of
/// each:
///   out_h = softmax(q_h k_hᵀ / √(d / heads)) v_h,     output = out_proj(out_0 … out_{heads − 1})
/// With fewer key heads than query heads, groups of query heads share a key head and its values:
/// with one key head, this is multi-query attention (Shazeer 2019); with several, grouped-query
/// attention (Ainslie et al. 2023). Keys and values are then narrower: width e = key heads · d /
/// heads.
struct MultiHeadAttention : Mixer {
  Tensor in_proj_weight;  ///< [d + 2 e, d]: rows of q, then k, then v
  Tensor in_proj_bias;    ///< [d + 2 e], or undefined
  Linear out_proj;        ///< [d, d]
  std::int64_t d, heads, kv_heads;
  double scale;
  ScoreMap map;
  double dropout_rate;
  AttentionScope scope;
  PatternPtr pattern;        ///< keys that a query reads, unless the context has a pattern
  bool linear = false;       ///< linear attention, which has no scores
  std::int64_t top_k = 0;    ///< maximum number of keys per query; 0: no limit
  LayerPositions positions;  ///< used by self-attention only

  MultiHeadAttention(const ModelOptions& options, AttentionScope which, Init& init);

  /// x: [rows, d] → [rows, d]. With a cache, self-attention appends the keys and values of x to it;
  /// linear attention stores its new state in it. Throws Error(failed) if cross-attention receives
  /// no encoder output, or if a cache is used while a tape is recording.
  Tensor operator()(const Tensor& x, const Context& context) const override;
  Tensor step(const Tensor& x, const Context& context) const override {
    return (*this)(x, context);
  }
  Tensor prefill(const Tensor& x, const Context& context) const override;
  Parameters parameters() const override;

 private:
  std::int64_t in_rows() const { return d + 2 * kv_heads * (d / heads); }
  Tensor queries(const Tensor& x) const;          ///< [rows, d] → [rows, d]
  Tensor keys_and_values(const Tensor& x) const;  ///< [rows, d] → [rows, 2 e]
  /// `max_length`: maximum number of keys of a sequence, including those in the cache or the
  /// segment memory; used by self-attention only.
  AttentionOptions attention_options(const Context& context, std::int64_t max_length) const;
  Tensor whole_sequences(const Tensor& x, const Context& context) const;
  /// Queries, keys and values side by side: [rows, d + 2 e]. With rotary positions, the queries and
  /// keys are rotated.
  Tensor rotated_qkv(const Tensor& x, Offsets offsets) const;
  Tensor next_segment(const Tensor& x, const Context& context, AttentionOptions options) const;
  Tensor decode_step(const Tensor& x, const Context& context) const;
  Tensor decode_step_linear(const Tensor& q, const Tensor& kv, const Context& context) const;
};

HEED_END
