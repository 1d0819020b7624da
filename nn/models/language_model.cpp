#include "nn/models/backbone.h"
#include "nn/models/model.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

/// A decoder-only language model (Radford et al. 2018): causal blocks and an output projection,
/// which may be tied to the embedding. The parameters of the blocks are named `decoder.layers.…`
/// and, within a block, as in an encoder layer.
class LanguageModel final : public Generative {
 public:
  LanguageModel(const ModelOptions& options, std::int64_t vocabulary, std::uint64_t seed)
      : options_(options) {
    Init init = init_of(options, seed);
    const std::int64_t d = options.d_model;
    decoder_.embedding = Embedding(vocabulary, d, options.scale_embeddings, init);
    ModelOptions with_table = options;
    with_table.max_positions = options.context;
    decoder_.positions = Positions(with_table, true, init);
    decoder_.embedding_norm = Backbone::norm_of(options, init);
    decoder_.dropout_rate = options.dropout.residual;
    decoder_.stack = Stack(options, options.decoder_layers, BlockKind::causal, init);
    output_ = output_layer(options, vocabulary,
                           output_is_tied(options) ? decoder_.embedding.weight : Tensor(), init);
  }

  Parameters parameters() const override {
    Parameters all;
    append(all, "embedding", decoder_.embedding);
    append(all, "positions", decoder_.positions);
    if (decoder_.embedding_norm) append(all, "embedding_norm", *decoder_.embedding_norm);
    append(all, "decoder", decoder_.stack);
    append_output(all, output_, output_is_tied(options_));
    return all;
  }
  std::optional<SegmentMemory> segment_memory() const override {
    if (options_.memory == 0) return std::nullopt;
    const std::int64_t kv_heads =
        options_.attention.kv_heads == 0 ? options_.heads : options_.attention.kv_heads;
    return SegmentMemory(options_.memory, options_.decoder_layers,
                         2 * kv_heads * (options_.d_model / options_.heads));
  }
  std::int64_t position_limit() const override {
    return info_of(options_.positions).by_distance ? 0 : options_.context;
  }
  Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const override {
    const std::int64_t limit = position_limit();
    for (std::size_t s = 0; limit > 0 && s + 1 < context.offsets.size(); ++s) {
      const std::int64_t length =
          context.first_position() + context.offsets[s + 1] - context.offsets[s];
      if (length > limit)
        fail("[language_model] a sequence of {} tokens exceeds the context of {}", length, limit);
    }
    return decoder_(ids, context);
  }
  const Linear& output() const override { return output_; }

 private:
  ModelOptions options_;
  Backbone decoder_;
  Linear output_;
};

}  // namespace

std::unique_ptr<Generative> make_language_model(const ModelOptions& options,
                                                std::int64_t vocabulary, std::uint64_t seed) {
  return std::make_unique<LanguageModel>(options, vocabulary, seed);
}

HEED_END
