#pragma once
#include "nn/layers/decoder.h"
#include "nn/layers/embedding.h"
#include "nn/layers/encoder.h"
#include "nn/layers/positions.h"
#include "nn/models/model.h"

HEED_BEGIN

/// The Transformer of Vaswani et al. 2017: embeddings and positions, encoder, decoder, output
/// projection. Encoder and decoder parameters are named as in torch.nn.Transformer. With tied
/// embeddings the output projection is the target table (and, for a shared vocabulary, the source
/// table too: `embedding.weight`).
class Seq2Seq final : public Model {
 public:
  Seq2Seq(const ModelOptions& options, std::int64_t source_vocabulary,
          std::int64_t target_vocabulary, bool shared_vocabulary, std::uint64_t seed);

  Parameters parameters() const override;
  Tensor hidden(const Rows& rows, Pass& pass) const override;
  const Tensor& output_weight() const override {
    return tied_ ? target_embedding_.weight : output_.weight;
  }
  const Tensor& output_bias() const override { return output_.bias; }
  std::unique_ptr<Decoding> decode(std::span<const std::int32_t> source,
                                   std::span<const std::int32_t> source_offsets,
                                   std::int64_t count) const override;
  std::int64_t position_limit() const override { return position_limit_; }

  Tensor encode(std::span<const std::int32_t> source, std::span<const std::int32_t> offsets,
                Pass& pass) const;
  /// One token a hypothesis, all at position `position` → logits [hypotheses, vocabulary].
  Array step(std::span<const std::int32_t> tokens, std::int64_t position,
             DecoderCache& cache) const;
  const Decoder& decoder() const { return decoder_; }

 private:
  /// encode() without gradients, some sentences at a time.
  Array encode_in_parts(std::span<const std::int32_t> source,
                        std::span<const std::int32_t> offsets) const;

  bool tied_, one_table_;
  double dropout_rate_;
  std::int64_t position_limit_;
  Embedding source_embedding_, target_embedding_;
  Positions source_positions_, target_positions_;
  Encoder encoder_;
  Decoder decoder_;
  Linear output_;  // not used when tied
};

HEED_END
