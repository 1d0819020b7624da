#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "nn/models/model.h"

HEED_BEGIN

/// Decoding without a cache: every step runs the whole model on all tokens so far. Slow, and so
/// simple that the cached ways are held against it.
class PlainDecoding final : public Decoding {
 public:
  /// Like Model::decode; the model must outlive it.
  PlainDecoding(const Model& model, std::span<const std::int32_t> source,
                std::span<const std::int32_t> source_offsets, std::int64_t count);

  Array step(std::span<const std::int32_t> tokens) override;
  void select(std::span<const std::int32_t> parents) override;

 private:
  struct Hypothesis {
    std::size_t sentence;
    std::vector<std::int32_t> tokens;
  };

  const Model& model_;
  std::vector<std::vector<std::int32_t>> sources_;  ///< none for a language model
  std::vector<Hypothesis> hypotheses_;
};

HEED_END
