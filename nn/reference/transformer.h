#pragma once
/// The Transformer of Vaswani et al., "Attention Is All You Need", 2017, composed of simple ops and
/// written for readability: post-norm, ReLU, sinusoidal positions, no dropout, one sequence at a
/// time. It is the definition of what nn/layers and nn/models compute in a faster and more general
/// form; tests/nn/test_reference.cpp compares losses and gradients. Parameters have the same names
/// as there, which are those of torch.nn.Transformer, so weights can be copied by name.
#include <cmath>
#include <string>
#include <vector>

#include "autograd/ops/basic.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/parameters.h"

HEED_BEGIN
namespace reference {

/// The sizes of a model.
struct Sizes {
  std::int64_t d_model = 256, heads = 4, d_ff = 1024;
  std::int64_t encoder_layers = 3, decoder_layers = 3;
};

/// MultiHead(x, y) = Concat(head_1, …, head_h) Wᴼ,
/// head_i = Attention(x W_iQ, y W_iK, y W_iV)                           section 3.2.2
/// Self-attention has y = x; in cross-attention, y is the output of the encoder.
struct MultiHeadAttention {
  std::int64_t heads;
  Tensor in_proj_weight;  ///< [3 d, d]: all W_iQᵀ, then all W_iKᵀ, then all W_iVᵀ
  Tensor in_proj_bias;    ///< [3 d]
  Linear out_proj;        ///< Wᴼ

  MultiHeadAttention(const Sizes& sizes, Init& init)
      : heads(sizes.heads),
        in_proj_weight(init.matrix(3 * sizes.d_model, sizes.d_model)),
        in_proj_bias(init.zeros(3 * sizes.d_model)),
        out_proj(sizes.d_model, sizes.d_model, init) {}

  Tensor operator()(const Tensor& x, const Tensor& y, const Array& mask = {}) const {
    const Tensor q = project(x, 0);                       // [heads, rows of x, d / heads]
    const Tensor k = project(y, 1);                       // [heads, rows of y, d / heads]
    const Tensor v = project(y, 2);                       // [heads, rows of y, d / heads]
    const Tensor head = attention(q, k, v, mask).output;  // [heads, rows of x, d / heads]
    const Tensor rows = transpose(head, 0, 1);            // [rows of x, heads, d / heads]
    return out_proj(reshape(rows, x.shape()));            // [rows of x, d]
  }
  Parameters parameters() const {
    Parameters all{{"in_proj_weight", in_proj_weight}, {"in_proj_bias", in_proj_bias}};
    append(all, "out_proj", out_proj);
    return all;
  }

 private:
  /// Queries (part 0), keys (1) or values (2) of all heads: [rows, d] → [heads, rows, d / heads]
  Tensor project(const Tensor& x, std::int64_t part) const {
    const std::int64_t rows = x.shape()[0], d = x.shape()[1];
    const Tensor y = affine_rows(x, in_proj_weight, in_proj_bias, part * d, (part + 1) * d);
    return transpose(reshape(y, {rows, heads, d / heads}), 0, 1);
  }
};

/// FFN(x) = max(0, x W₁ᵀ + b₁) W₂ᵀ + b₂                                   section 3.3
struct FeedForward {
  Linear linear1, linear2;

  FeedForward(const Sizes& sizes, Init& init)
      : linear1(sizes.d_model, sizes.d_ff, init), linear2(sizes.d_ff, sizes.d_model, init) {}

  Tensor operator()(const Tensor& x) const { return linear2(relu(linear1(x))); }
  Parameters parameters() const { return parameters_of("linear1", linear1, "linear2", linear2); }
};

struct LayerNorm {
  static constexpr real eps = real(1e-5);
  Tensor weight, bias;  ///< gain and bias: [d]

  LayerNorm(const Sizes& sizes, Init& init)
      : weight(init.ones(sizes.d_model)), bias(init.zeros(sizes.d_model)) {}

  Tensor operator()(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }
  Parameters parameters() const { return {{"weight", weight}, {"bias", bias}}; }
};

/// A layer of the encoder or, with a causal mask, of a language model: [rows, d] → [rows, d]
struct EncoderLayer {
  MultiHeadAttention self_attention;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;

  EncoderLayer(const Sizes& sizes, Init& init)
      : self_attention(sizes, init),
        feed_forward(sizes, init),
        norm1(sizes, init),
        norm2(sizes, init) {}

  Tensor operator()(Tensor x, const Array& mask = {}) const {
    x = norm1(x + self_attention(x, x, mask));
    x = norm2(x + feed_forward(x));
    return x;
  }
  Parameters parameters() const {
    return parameters_of("self_attn", self_attention, "", feed_forward, "norm1", norm1, "norm2",
                         norm2);
  }
};

/// A layer of the decoder, which also reads the output of the encoder.
struct DecoderLayer {
  MultiHeadAttention self_attention, cross_attention;
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;

  DecoderLayer(const Sizes& sizes, Init& init)
      : self_attention(sizes, init),
        cross_attention(sizes, init),
        feed_forward(sizes, init),
        norm1(sizes, init),
        norm2(sizes, init),
        norm3(sizes, init) {}

  Tensor operator()(Tensor x, const Tensor& encoded, const Array& mask) const {
    x = norm1(x + self_attention(x, x, mask));
    x = norm2(x + cross_attention(x, encoded));
    x = norm3(x + feed_forward(x));
    return x;
  }
  Parameters parameters() const {
    return parameters_of("self_attn", self_attention, "multihead_attn", cross_attention, "",
                         feed_forward, "norm1", norm1, "norm2", norm2, "norm3", norm3);
  }
};

/// PE(pos, 2i) = sin(pos / 10000^(2i/d)),  PE(pos, 2i+1) = cos(pos / 10000^(2i/d)): [rows, d]
/// Section 3.5.
inline Array positional_encoding(std::int64_t rows, std::int64_t d) {
  Array table({rows, d});
  for (std::int64_t pos = 0; pos < rows; ++pos) {
    for (std::int64_t c = 0; c < d; ++c) {
      const double i = static_cast<double>(c / 2);
      const double angle =
          static_cast<double>(pos) / std::pow(10000.0, 2 * i / static_cast<double>(d));
      table.at({pos, c}) = static_cast<real>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

/// √d times the rows of the table, plus positions: ids → [ids, d]       sections 3.4 and 3.5
inline Tensor embed(const Embedding& table, std::span<const std::int32_t> ids) {
  const Tensor x = table(ids);
  return x + Tensor(positional_encoding(x.shape()[0], x.shape()[1]));
}

template <class Layer>
void append_layers(Parameters& all, const std::string& name, const std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    append(all, name + ".layers." + std::to_string(i), layers[i]);
}

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
