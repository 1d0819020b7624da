#pragma once
#include <optional>
#include <vector>

#include "nn/layers/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"

HEED_BEGIN

/// encoder: rows see their whole sequence. causal: rows see themselves and those before them, as in
/// a language model. decoder: causal, and reads a memory too.
enum class BlockKind { encoder, causal, decoder };

/// A residual connection around a sublayer, with its norm:
///   pre:   x + dropout(sublayer(norm(x)))      (Xiong et al. 2020)
///   post:  norm(x + dropout(sublayer(x)))      (Vaswani et al. 2017)
struct Residual {
  Norm norm;
  NormPlace place;
  double dropout_rate;

  Residual(const ModelOptions& options, Init& init)
      : norm(options, init), place(options.norm), dropout_rate(options.dropout.residual) {}

  template <class Sublayer>
  Tensor operator()(const Tensor& x, Pass& pass, Sublayer sublayer) const {
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    const bool pre = place == NormPlace::pre;
    const Tensor change = sublayer(pre ? norm(x) : x);
    const Tensor total = dropout_add(change, x, p, pass.next_key());
    return pre ? total : norm(total);
  }
};

/// A layer of a Transformer: self-attention, attention to the memory if the kind has it, and
/// feed-forward, each with its residual.
struct TransformerBlock {
  MultiHeadAttention self_attention;
  std::optional<MultiHeadAttention> cross_attention;
  FeedForward feed_forward;
  Residual around_self, around_feed_forward;
  std::optional<Residual> around_cross;

  TransformerBlock(const ModelOptions& options, BlockKind kind, Init& init);

  /// x: [rows, d] → [rows, d]; with a cache, x holds the new rows only.
  Tensor operator()(const Tensor& x, const Context& context) const;
  /// Named as in nn.TransformerEncoderLayer or, with cross-attention, nn.TransformerDecoderLayer.
  Parameters parameters() const;
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
};

HEED_END
