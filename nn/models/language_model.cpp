#include "nn/models/language_model.h"

HEED_BEGIN

namespace {

class LanguageModelDecoding final : public Decoding {
 public:
  LanguageModelDecoding(const LanguageModel& model, std::int64_t count)
      : model_(model), caches_(model.depth()), ancestry_(count) {}
  Array step(std::span<const std::int32_t> tokens) override {
    return model_.step(tokens, position_++, caches_, ancestry_);
  }
  void select(std::span<const std::int32_t> parents) override { ancestry_.select(parents); }

 private:
  const LanguageModel& model_;
  std::vector<SelfCache> caches_;
  Ancestry ancestry_;
  std::int64_t position_ = 0;
};

}  // namespace

LanguageModel::LanguageModel(const ModelOptions& options, std::int64_t vocabulary,
                             std::uint64_t seed)
    : tied_(options.tie_embeddings),
      dropout_rate_(options.dropout.residual),
      context_(options.context) {
  Init init(options.init, options.init_std, seed);
  embedding_ = Embedding(vocabulary, options.d_model, options.scale_embeddings, init);
  positions_ = Positions(options.positions, options.context, options.d_model, init);
  decoder_ = Encoder(options, options.decoder_layers, true, init);
  if (!tied_) output_ = Linear(options.d_model, vocabulary, init);
}

Parameters LanguageModel::parameters() const {
  Parameters all;
  append(all, "embedding", embedding_);
  append(all, "positions", positions_);
  append(all, "decoder", decoder_);
  if (!tied_) append(all, "output", output_);
  return all;
}

Tensor LanguageModel::hidden(const Rows& rows, Pass& pass) const {
  const Tensor x = positions_(embedding_(rows.target_in), rows.target_offsets);
  return decoder_(dropout(x, static_cast<real>(pass.rate(dropout_rate_)), pass.next_key()),
                  rows.target_offsets, pass);
}

std::unique_ptr<Decoding> LanguageModel::decode(std::span<const std::int32_t>,
                                                std::span<const std::int32_t>,
                                                std::int64_t count) const {
  return std::make_unique<LanguageModelDecoding>(*this, count);
}

Array LanguageModel::step(std::span<const std::int32_t> tokens, std::int64_t position,
                          std::vector<SelfCache>& caches, Ancestry& ancestry) const {
  const NoGrad no_grad;
  ancestry.grow();
  std::vector<std::int32_t> offsets(tokens.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int32_t>(i);
  const Tensor x = positions_(embedding_(tokens), offsets, position);
  return affine(decoder_.step(x, caches, ancestry), output_weight(), output_bias()).value();
}

std::unique_ptr<Model> make_language_model(const ModelOptions& options, std::int64_t vocabulary,
                                           std::uint64_t seed) {
  return std::make_unique<LanguageModel>(options, vocabulary, seed);
}

HEED_END
