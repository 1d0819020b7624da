#include "nn/models/seq2seq.h"

#include <algorithm>

HEED_BEGIN

namespace {

Init init_of(const ModelOptions& options, std::uint64_t seed) {
  return {options.init, options.init_std, seed};
}

/// Where one hypothesis after the other asks for its next token.
class Seq2SeqDecoding final : public Decoding {
 public:
  Seq2SeqDecoding(const Seq2Seq& model, DecoderCache cache)
      : model_(model), cache_(std::move(cache)) {}
  Array step(std::span<const std::int32_t> tokens) override {
    return model_.step(tokens, position_++, cache_);
  }
  void select(std::span<const std::int32_t> parents) override {
    cache_.ancestry.select(parents);
    std::vector<std::int32_t> sentence;
    for (const std::int32_t p : parents)
      sentence.push_back(cache_.sentence[static_cast<std::size_t>(p)]);
    cache_.sentence = std::move(sentence);
  }

 private:
  const Seq2Seq& model_;
  DecoderCache cache_;
  std::int64_t position_ = 0;
};

}  // namespace

Seq2Seq::Seq2Seq(const ModelOptions& options, std::int64_t source_vocabulary,
                 std::int64_t target_vocabulary, bool shared_vocabulary, std::uint64_t seed)
    : tied_(options.tie_embeddings),
      one_table_(options.tie_embeddings && shared_vocabulary &&
                 source_vocabulary == target_vocabulary),
      dropout_rate_(options.dropout.residual),
      position_limit_(options.positions == PositionKind::learned ? options.max_positions : 0) {
  Init init = init_of(options, seed);
  target_embedding_ = Embedding(target_vocabulary, options.d_model, options.scale_embeddings, init);
  source_embedding_ =
      one_table_ ? target_embedding_
                 : Embedding(source_vocabulary, options.d_model, options.scale_embeddings, init);
  source_positions_ = Positions(options.positions, options.max_positions, options.d_model, init);
  target_positions_ = Positions(options.positions, options.max_positions, options.d_model, init);
  encoder_ = Encoder(options, options.encoder_layers, false, init);
  decoder_ = Decoder(options, init);
  if (!tied_) output_ = Linear(options.d_model, target_vocabulary, init);
}

Parameters Seq2Seq::parameters() const {
  Parameters all;
  if (one_table_) {
    append(all, "embedding", target_embedding_);
  } else {
    append(all, "source_embedding", source_embedding_);
    append(all, "target_embedding", target_embedding_);
  }
  append(all, "source_positions", source_positions_);
  append(all, "target_positions", target_positions_);
  append(all, "encoder", encoder_);
  append(all, "decoder", decoder_);
  if (!tied_) append(all, "output", output_);
  return all;
}

Tensor Seq2Seq::encode(std::span<const std::int32_t> source, std::span<const std::int32_t> offsets,
                       Pass& pass) const {
  const Tensor x = source_positions_(source_embedding_(source), offsets);
  return encoder_(dropout(x, static_cast<real>(pass.rate(dropout_rate_)), pass.next_key()), offsets,
                  pass);
}

Tensor Seq2Seq::hidden(const Rows& rows, Pass& pass) const {
  const Memory memory{encode(rows.source, rows.source_offsets, pass), rows.source_offsets};
  const Tensor x = target_positions_(target_embedding_(rows.target_in), rows.target_offsets);
  return decoder_(dropout(x, static_cast<real>(pass.rate(dropout_rate_)), pass.next_key()),
                  rows.target_offsets, memory, pass);
}

std::unique_ptr<Decoding> Seq2Seq::decode(std::span<const std::int32_t> source,
                                          std::span<const std::int32_t> source_offsets,
                                          std::int64_t) const {
  const NoGrad no_grad;
  return std::make_unique<Seq2SeqDecoding>(
      *this, decoder_.start({Tensor(encode_in_parts(source, source_offsets)), source_offsets}));
}

Array Seq2Seq::encode_in_parts(std::span<const std::int32_t> source,
                               std::span<const std::int32_t> offsets) const {
  constexpr std::int32_t part = 2048;  // tokens: what a layer computes stays in the caches
  const std::int32_t total = offsets.back(), parts = std::max(1, (total + part - 1) / part);
  Array memory;
  std::size_t begin = 0;
  for (std::int32_t i = 1; begin + 1 < offsets.size(); ++i) {
    // Whole sentences up to the part's share of all tokens: no part is left with a few.
    const auto share = static_cast<std::int32_t>(std::int64_t{total} * std::min(i, parts) / parts);
    std::size_t end = begin + 1;
    while (end + 1 < offsets.size() && offsets[end] < share) ++end;
    std::vector<std::int32_t> own(offsets.begin() + static_cast<std::ptrdiff_t>(begin),
                                  offsets.begin() + static_cast<std::ptrdiff_t>(end) + 1);
    for (std::int32_t& o : own) o -= offsets[begin];
    Pass pass;
    const Array rows = encode(source.subspan(static_cast<std::size_t>(offsets[begin]),
                                             static_cast<std::size_t>(own.back())),
                              own, pass)
                           .value();
    if (!memory.defined()) memory = Array({total, rows.cols()});
    std::copy_n(rows.data(), rows.size(), memory.row(offsets[begin]));
    begin = end;
  }
  return memory;
}

Array Seq2Seq::step(std::span<const std::int32_t> tokens, std::int64_t position,
                    DecoderCache& cache) const {
  const NoGrad no_grad;
  cache.ancestry.grow();
  // Every hypothesis is a sequence of one row.
  std::vector<std::int32_t> offsets(tokens.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int32_t>(i);
  const Tensor x = target_positions_(target_embedding_(tokens), offsets, position);
  return affine(decoder_.step(x, cache), output_weight(), output_bias()).value();
}

std::unique_ptr<Model> make_seq2seq(const ModelOptions& options, std::int64_t source_vocabulary,
                                    std::int64_t target_vocabulary, bool shared_vocabulary,
                                    std::uint64_t seed) {
  return std::make_unique<Seq2Seq>(options, source_vocabulary, target_vocabulary, shared_vocabulary,
                                   seed);
}

HEED_END
