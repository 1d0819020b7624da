#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "autograd/ops/more/dropout.h"
#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"

HEED_BEGIN

/// encoder: a row reads its whole sequence. causal: a row reads itself and earlier rows, as in a
/// language model. decoder: like causal, with cross-attention to the output of the encoder.
enum class BlockKind { encoder, causal, decoder };

/// A residual connection around a sublayer, with its norm:
///   pre:   x + dropout(sublayer(norm(x)))      (Xiong et al. 2020)
///   post:  norm(x + dropout(sublayer(x)))      (Vaswani et al. 2017)
///   none:  x + dropout(sublayer(x))
/// With ModelOptions::residual false, "x +" is omitted.
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

/// A layer of a Transformer: a mixer (by default self-attention), cross-attention in a decoder, and
/// a feed-forward layer. Serial: each of them has a residual connection. Parallel: all of them read
/// the same rows, and their sum has one residual connection (Wang and Komatsuzaki, GPT-J, 2021).
struct TransformerBlock {
  MixerKind mixer_kind;
  std::shared_ptr<const Mixer> mixer;
  std::optional<MultiHeadAttention> cross_attention;
  FeedForward feed_forward;
  Residual around_mixer;  ///< residual of the mixer or, in a parallel block, of the sum
  std::optional<Residual> around_cross, around_feed_forward;

  TransformerBlock(const ModelOptions& options, BlockKind kind, Init& init);

  /// x: [rows, d] → [rows, d]; with a cache, x contains only the new rows.
  Tensor operator()(const Tensor& x, const Context& context) const;
  /// The names are those of nn.TransformerEncoderLayer or, with cross-attention,
  /// nn.TransformerDecoderLayer. A mixer other than self-attention has the name "mixer".
  Parameters parameters() const;
  std::vector<NamedStatistics> statistics() const;  ///< statistics of the batch norms
};

/// Blocks in sequence, then an optional norm (ModelOptions::final_norm): [rows, d] → [rows, d].
/// The parameters have the names of nn.TransformerEncoder or nn.TransformerDecoder.
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
