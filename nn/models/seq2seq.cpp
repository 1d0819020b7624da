#include "nn/models/backbone.h"
#include "nn/models/model.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

/// The Transformer of Vaswani et al. 2017: an encoder, a decoder that reads the encoder output, and
/// an output projection. Encoder and decoder parameters are named as in torch.nn.Transformer. With
/// tied embeddings, the output projection is the embedding table of the target, unless tie_output is
/// false. If the vocabulary is also shared, the source uses the same table (`embedding.weight`).
class Seq2Seq final : public Generative {
 public:
  // The order of construction determines the random streams of the parameters (Init).
  Seq2Seq(const ModelOptions& options, std::int64_t source_vocabulary,
          std::int64_t target_vocabulary, bool shared_vocabulary, std::uint64_t seed)
      : options_(options),
        one_table_(options.tie_embeddings && shared_vocabulary && options.input_width == 0 &&
                   source_vocabulary == target_vocabulary) {
    Init init = init_of(options, seed);
    const std::int64_t d = options.d_model;
    decoder_.embedding = Embedding(target_vocabulary, d, options.scale_embeddings, init);
    encoder_.input = Backbone::input_of(options, BlockKind::encoder, init);
    if (!encoder_.input) {
      encoder_.embedding = one_table_
                               ? decoder_.embedding
                               : Embedding(source_vocabulary, d, options.scale_embeddings, init);
    }
    for (Backbone* const backbone : {&encoder_, &decoder_}) {
      backbone->positions = Positions(options, backbone == &decoder_, init);
      backbone->embedding_norm = Backbone::norm_of(options, init);
      backbone->dropout_rate = options.dropout.residual;
    }
    encoder_.stack = Stack(options, options.encoder_layers, BlockKind::encoder, init);
    decoder_.stack = Stack(options, options.decoder_layers, BlockKind::decoder, init);
    output_ = output_layer(options, target_vocabulary,
                           output_is_tied(options) ? decoder_.embedding.weight : Tensor(), init);
  }

  Parameters parameters() const override {
    Parameters all;
    if (one_table_) {
      append(all, "embedding", decoder_.embedding);
    } else {
      if (encoder_.input)
        append(all, "source_input", *encoder_.input);
      else
        append(all, "source_embedding", encoder_.embedding);
      append(all, "target_embedding", decoder_.embedding);
    }
    append(all, "source_positions", encoder_.positions);
    append(all, "target_positions", decoder_.positions);
    if (options_.embedding_norm) {
      append(all, "source_embedding_norm", *encoder_.embedding_norm);
      append(all, "target_embedding_norm", *decoder_.embedding_norm);
    }
    append(all, "encoder", encoder_.stack);
    append(all, "decoder", decoder_.stack);
    append_output(all, output_, output_is_tied(options_));
    return all;
  }
  std::int64_t position_limit() const override { return heed::position_limit(options_); }
  EncoderOutput encode(const SideView& source, Pass& pass) const override {
    return {encoder_(source, {source.offsets, nullptr, pass}),
            encoder_.row_offsets(source.offsets)};
  }
  Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const override {
    return decoder_(ids, context);
  }
  const Linear& output() const override { return output_; }

 private:
  ModelOptions options_;
  bool one_table_;
  Backbone encoder_, decoder_;
  Linear output_;
};

}  // namespace

std::unique_ptr<Generative> make_seq2seq(const ModelOptions& options,
                                         std::int64_t source_vocabulary,
                                         std::int64_t target_vocabulary, bool shared_vocabulary,
                                         std::uint64_t seed) {
  return std::make_unique<Seq2Seq>(options, source_vocabulary, target_vocabulary, shared_vocabulary,
                                   seed);
}

HEED_END
