#pragma once
#include <span>
#include <vector>

#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/residual.h"

HEED_BEGIN

/// What the decoder attends to: the encoder's rows, and where each sentence begins in them.
struct Memory {
  Tensor rows;                            ///< [source tokens, d]
  std::span<const std::int32_t> offsets;  ///< [sentences + 1]
};

/// What a decoding step needs of the past: own keys and values for each layer, those of the memory,
/// and which sentence each hypothesis translates.
struct DecoderCache {
  std::vector<SelfCache> self;  ///< one for each layer
  std::vector<Tensor> memory;   ///< one for each layer: [source tokens, 2 d]
  std::vector<std::int32_t> memory_offsets;
  std::vector<std::int32_t> sentence;  ///< of each hypothesis
  Ancestry ancestry;
};

/// Causal self-attention, attention to the memory, feed-forward; PyTorch's names
/// (nn.TransformerDecoderLayer).
struct DecoderLayer {
  MultiHeadAttention self_attn, multihead_attn;
  FeedForward feed_forward;
  Norm norm1, norm2, norm3;
  NormPlace place = NormPlace::pre;
  double dropout_rate = 0;

  DecoderLayer() = default;
  DecoderLayer(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, std::span<const std::int32_t> offsets, const Memory& memory,
                    Pass& pass) const;
  Tensor step(const Tensor& x, DecoderCache& cache, std::size_t layer) const;
  Parameters parameters() const;
};

/// A stack of decoder layers and a final norm: [target tokens, d] → [target tokens, d].
struct Decoder {
  std::vector<DecoderLayer> layers;
  Norm norm;

  Decoder() = default;
  Decoder(const ModelOptions& options, Init& init);

  Tensor operator()(Tensor x, std::span<const std::int32_t> offsets, const Memory& memory,
                    Pass& pass) const;
  /// A cache for one hypothesis a sentence of memory, before its first token.
  DecoderCache start(const Memory& memory) const;
  /// x: the next token's row of each hypothesis, [hypotheses, d]. Call cache.ancestry.grow() first.
  Tensor step(Tensor x, DecoderCache& cache) const;
  Parameters parameters() const;
};

HEED_END
