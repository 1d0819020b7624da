#pragma once
#include "autograd/ops/dropout.h"
#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/positions.h"

HEED_BEGIN

/// From token ids to rows: embedding, positions, dropout, a stack of blocks. A model with other parameter
/// names (those of torch.nn.Transformer) or a shared table builds and lists the parts itself.
struct Tower {
  Embedding embedding;
  Positions positions;
  double dropout_rate = 0;
  Stack stack;

  Tower() = default;
  /// The number of blocks is options.encoder_layers for kind encoder, else options.decoder_layers.
  Tower(const ModelOptions& options, std::int64_t vocabulary, BlockKind kind, Init& init)
      : embedding(vocabulary, options.d_model, options.scale_embeddings, init),
        positions(options, kind != BlockKind::encoder, init),
        dropout_rate(options.dropout.residual),
        stack(options, kind == BlockKind::encoder ? options.encoder_layers : options.decoder_layers,
              kind, init) {}

  /// n ids → [n, d]; the context's offsets are those of the ids.
  Tensor operator()(std::span<const std::int32_t> ids, const Context& context) const {
    const Tensor x = positions(embedding(ids), context.offsets, context.first_position());
    Pass& pass = context.pass;
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    Context inner = context;
    inner.terms = positions.terms;
    return stack(dropout(x, p, pass.next_key()), inner);
  }
  /// The same without a memory and without a cache.
  Tensor operator()(std::span<const std::int32_t> ids, Offsets offsets, Pass& pass) const {
    return (*this)(ids, {offsets, nullptr, pass});
  }
  /// Outside of training: no dropout.
  Tensor operator()(std::span<const std::int32_t> ids, Offsets offsets) const {
    Pass evaluation;
    return (*this)(ids, offsets, evaluation);
  }
  Parameters parameters() const {
    return parameters_of("embedding", embedding, "positions", positions, "", stack);
  }
};

HEED_END
