#pragma once
#include "nn/layers/embedding.h"
#include "nn/layers/encoder.h"
#include "nn/layers/positions.h"
#include "nn/models/model.h"

HEED_BEGIN

/// A decoder-only language model (Radford et al. 2018): embeddings and positions, causal layers,
/// final norm, output projection. The layers are encoder layers with a causal mask, named
/// `decoder.layers.…`.
class LanguageModel final : public Model {
 public:
  LanguageModel(const ModelOptions& options, std::int64_t vocabulary, std::uint64_t seed);

  Parameters parameters() const override;
  Tensor hidden(const Rows& rows, Pass& pass) const override;
  const Tensor& output_weight() const override {
    return tied_ ? embedding_.weight : output_.weight;
  }
  const Tensor& output_bias() const override { return output_.bias; }
  std::unique_ptr<Decoding> decode(std::span<const std::int32_t> source,
                                   std::span<const std::int32_t> source_offsets,
                                   std::int64_t count) const override;
  std::int64_t position_limit() const override { return context_; }

  Array step(std::span<const std::int32_t> tokens, std::int64_t position,
             std::vector<SelfCache>& caches, Ancestry& ancestry) const;
  std::size_t depth() const { return decoder_.layers.size(); }

 private:
  bool tied_;
  double dropout_rate_;
  std::int64_t context_;
  Embedding embedding_;
  Positions positions_;
  Encoder decoder_;
  Linear output_;  // not used when tied
};

HEED_END
