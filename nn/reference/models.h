#pragma once
/// The two models of the reference Transformer: an encoder-decoder and a language model.
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/matmul.h"
#include "nn/reference/transformer.h"

HEED_BEGIN
namespace reference {

/// The encoder-decoder of section 3.1, with one embedding for source, target and logits
/// (section 3.4).
struct EncoderDecoder {
  Embedding embedding;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;

  EncoderDecoder(const Sizes& sizes, std::int64_t vocabulary, Init& init)
      : embedding(vocabulary, sizes.d_model, true, init) {
    for (std::int64_t i = 0; i < sizes.encoder_layers; ++i) encoder.emplace_back(sizes, init);
    for (std::int64_t i = 0; i < sizes.decoder_layers; ++i) decoder.emplace_back(sizes, init);
  }

  /// x₁ … x_n </s> → [source rows, d]
  Tensor encode(std::span<const std::int32_t> source) const {
    Tensor x = embed(embedding, source);
    for (const EncoderLayer& layer : encoder) x = layer(x);
    return x;
  }
  /// <s> y₁ … y_m → logits of y₁ … y_m </s>: [m + 1, vocabulary]
  Tensor decode(const Tensor& encoded, std::span<const std::int32_t> target) const {
    Tensor x = embed(embedding, target);
    const Array mask = causal_mask(x.shape()[0]);
    for (const DecoderLayer& layer : decoder) x = layer(x, encoded, mask);
    return matmul(x, embedding.weight, false, true);
  }
  Parameters parameters() const {
    Parameters all = parameters_of("embedding", embedding);
    append_layers(all, "encoder", encoder);
    append_layers(all, "decoder", decoder);
    return all;
  }
};

/// A decoder without an encoder, which predicts each token from the tokens before it.
struct LanguageModel {
  Embedding embedding;
  std::vector<EncoderLayer> decoder;

  LanguageModel(const Sizes& sizes, std::int64_t vocabulary, Init& init)
      : embedding(vocabulary, sizes.d_model, true, init) {
    for (std::int64_t i = 0; i < sizes.decoder_layers; ++i) decoder.emplace_back(sizes, init);
  }

  /// The logits of the next token after each of the ids: [ids, vocabulary]
  Tensor logits(std::span<const std::int32_t> ids) const {
    Tensor x = embed(embedding, ids);
    const Array mask = causal_mask(x.shape()[0]);
    for (const EncoderLayer& layer : decoder) x = layer(x, mask);
    return matmul(x, embedding.weight, false, true);
  }
  Parameters parameters() const {
    Parameters all = parameters_of("embedding", embedding);
    append_layers(all, "decoder", decoder);
    return all;
  }
};

}  // namespace reference
HEED_END
