#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/positions.h"
#include "nn/models/model.h"

HEED_BEGIN

namespace {

/// From token ids to rows: embedding, positions, dropout, a stack of blocks.
struct Tower {
  Embedding embedding;
  Positions positions;
  double dropout_rate = 0;
  Stack stack;

  /// n ids → [n, d]; the context's offsets are theirs.
  Tensor operator()(std::span<const std::int32_t> ids, const Context& context) const {
    const Tensor x = positions(embedding(ids), context.offsets, context.first_position());
    Pass& pass = context.pass;
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    Context inner = context;
    inner.terms = positions.terms;
    return stack(dropout(x, p, pass.next_key()), inner);
  }
};

/// The Transformer of Vaswani et al. 2017, whose decoder reads the encoder's rows, with an output
/// projection; its decoder alone, a language model (Radford et al. 2018); or its encoder alone, which
/// gives each row a label.
///
/// Parameters of encoder and decoder are named as in torch.nn.Transformer; the blocks of a language
/// model have those of encoder layers, under `decoder.layers.…`. With tied embeddings the output
/// projection is the decoder's table and, with a shared vocabulary, the encoder's too.
class Transformer final : public Generative {
 public:
  // The order of construction determines the parts' random streams (Init).
  Transformer(Architecture architecture, const ModelOptions& options,
              const VocabularySizes& vocabulary, std::uint64_t seed)
      : architecture_(architecture), options_(options) {
    Init init(options.init, options.init_std, seed);
    const std::int64_t d = options.d_model;
    const bool tied = options.tie_embeddings && decodes();
    one_table_ = tied && vocabulary.shared && vocabulary.source == vocabulary.target;
    if (decodes())
      decoder_.embedding = Embedding(vocabulary.target, d, options.scale_embeddings, init);
    if (encodes()) {
      encoder_.embedding = one_table_
                               ? decoder_.embedding
                               : Embedding(vocabulary.source, d, options.scale_embeddings, init);
    }
    const std::int64_t places = encodes() ? options.max_positions : options.context;
    if (encodes()) encoder_.positions = Positions(options.positions, places, d, init);
    if (decodes()) decoder_.positions = Positions(options.positions, places, d, init);
    encoder_.dropout_rate = decoder_.dropout_rate = options.dropout.residual;
    if (encodes())
      encoder_.stack = Stack(options, options.encoder_layers, BlockKind::encoder, init);
    if (decodes()) {
      const BlockKind kind = encodes() ? BlockKind::decoder : BlockKind::causal;
      decoder_.stack = Stack(options, options.decoder_layers, kind, init);
    }
    output_ = tied ? Linear(decoder_.embedding.weight) : Linear(d, vocabulary.target, init);
  }

  Parameters parameters() const override {
    Parameters all;
    const bool both = encodes() && decodes();
    const std::string of_source = both ? "source_" : "", of_target = both ? "target_" : "";
    if (one_table_) append(all, "embedding", decoder_.embedding);
    if (encodes() && !one_table_) append(all, of_source + "embedding", encoder_.embedding);
    if (decodes() && !one_table_) append(all, of_target + "embedding", decoder_.embedding);
    if (encodes()) append(all, of_source + "positions", encoder_.positions);
    if (decodes()) append(all, of_target + "positions", decoder_.positions);
    if (encodes()) append(all, "encoder", encoder_.stack);
    if (decodes()) append(all, "decoder", decoder_.stack);
    if (!decodes() || !options_.tie_embeddings) append(all, "output", output_);
    return all;
  }
  std::int64_t position_limit() const override {
    if (encodes()) return options_.positions == PositionKind::learned ? options_.max_positions : 0;
    return decoder_.positions.terms.empty() ? options_.context : 0;  // terms know distances only
  }
  Memory encode(const SideView& source, Pass& pass) const override {
    if (!encodes()) return {};
    return {encoder_(source.ids, {source.offsets, nullptr, pass}), source.offsets};
  }
  Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const override {
    return decoder_(ids, context);
  }
  Tensor hidden(const Rows& rows, Pass& pass) const override {
    const Memory memory = encode(rows.source, pass);
    if (!decodes()) return memory.rows;
    return decoder_rows(rows.target.ids, {rows.target.offsets, &memory, pass});
  }
  const Linear& output() const override { return output_; }

 private:
  bool encodes() const { return has_encoder(architecture_); }
  bool decodes() const { return has_decoder(architecture_); }

  Architecture architecture_;
  ModelOptions options_;
  bool one_table_;
  Tower encoder_, decoder_;
  Linear output_;
};

}  // namespace

std::unique_ptr<Generative> make_model(Architecture architecture, const ModelOptions& options,
                                       const VocabularySizes& vocabulary, std::uint64_t seed) {
  return std::make_unique<Transformer>(architecture, options, vocabulary, seed);
}

HEED_END
