#pragma once
#include <span>
#include <vector>

#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/residual.h"

HEED_BEGIN

/// Self-attention, then feed-forward, each in a residual. With PyTorch's names
/// (nn.TransformerEncoderLayer).
struct EncoderLayer {
  MultiHeadAttention self_attn;
  FeedForward feed_forward;
  Norm norm1, norm2;
  NormPlace place = NormPlace::pre;
  double dropout_rate = 0;

  EncoderLayer() = default;
  EncoderLayer(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, std::span<const std::int32_t> offsets, bool causal,
                    Pass& pass) const;
  /// One more token for every hypothesis of a language model: x is [hypotheses, d].
  Tensor step(const Tensor& x, SelfCache& cache, const Ancestry& ancestry) const;
  Parameters parameters() const;
};

/// A stack of encoder layers and a final norm: rows [tokens, d] of sequences end to end → [tokens,
/// d]. Causal, it is the decoder of a language model.
struct Encoder {
  std::vector<EncoderLayer> layers;
  Norm norm;
  bool causal = false;

  Encoder() = default;
  Encoder(const ModelOptions& options, std::int64_t depth, bool is_causal, Init& init);

  Tensor operator()(Tensor x, std::span<const std::int32_t> offsets, Pass& pass) const;
  Tensor step(Tensor x, std::vector<SelfCache>& caches, const Ancestry& ancestry) const;
  Parameters parameters() const;
};

HEED_END
