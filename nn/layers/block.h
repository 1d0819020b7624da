#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "autograd/ops/dropout.h"
#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"

HEED_BEGIN

/// encoder: rows see their whole sequence. causal: rows see themselves and those before them, as in
/// a language model. decoder: causal, with cross-attention to the output
/// of the encoder.
enum class BlockKind { encoder, causal, decoder };

/// A residual connection around a sublayer, with its norm:
///   pre:   x + dropout(sublayer(norm(x)))      (Xiong et al. 2020)
///   post:  norm(x + dropout(sublayer(x)))      (Vaswani et al. 2017)
///   none:  x + dropout(sublayer(x))
/// Without the connection (ModelOptions::residual), "x +" is left out.
struct Residual {
  std::optional<Norm> norm;
  NormPlace place;
  bool connected;
  double dropout_rate;

  Residual(const ModelOptions& options, Init& init);

  template <class Sublayer>
  Tensor operator()(const Tensor& x, Pass& pass, Sublayer sublayer) const {
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    const Tensor change = sublayer(place == NormPlace::pre ? (*norm)(x, pass) : x);
    const RandomKey key = pass.next_key();
    const Tensor total = connected ? dropout_add(change, x, p, key) : dropout(change, p, key);
    return place == NormPlace::post ? (*norm)(total, pass) : total;
  }
};

/// A layer of a Transformer: a mixer (self-attention, unless the options name another), cross-attention
/// if the kind has it, and feed-forward. Serial: each has its residual. Parallel: they read
/// the same rows, and their sum has one residual (Wang and Komatsuzaki, GPT-J, 2021).
struct TransformerBlock {
  MixerKind mixer_kind;
  std::shared_ptr<const Mixer> mixer;
  std::optional<MultiHeadAttention> cross_attention;
  FeedForward feed_forward;
  Residual around_mixer;  ///< of a parallel block: around all of it
  std::optional<Residual> around_cross, around_feed_forward;

  TransformerBlock(const ModelOptions& options, BlockKind kind, Init& init);

  /// x: [rows, d] → [rows, d]; with a cache, x holds the new rows only.
  Tensor operator()(const Tensor& x, const Context& context) const;
  /// Named as in nn.TransformerEncoderLayer or, with cross-attention, nn.TransformerDecoderLayer. A mixer
  /// other than self-attention is named "mixer".
  Parameters parameters() const;
  std::vector<NamedStatistics> statistics() const;  ///< of batch norms
};

/// Blocks in sequence, and a norm after the last (ModelOptions::final_norm): [rows, d] → [rows, d].
/// Named as in nn.TransformerEncoder and nn.TransformerDecoder.
struct Stack {
  std::vector<TransformerBlock> blocks;
  std::optional<Norm> norm;

  Stack() = default;
  Stack(const ModelOptions& options, std::int64_t depth, BlockKind kind, Init& init);

  Tensor operator()(Tensor x, Context context) const;
  Parameters parameters() const;
  std::vector<NamedStatistics> statistics() const;
};

HEED_END
