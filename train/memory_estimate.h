#pragma once
/// How much memory training will take.
#include "nn/model.h"
#include "train/config.h"

namespace heed {

/// An average training step.
struct StepWork {
  double flops = 0;  ///< of matrix products, forward and backward
  double sequences = 0, source_tokens = 0, target_tokens = 0;
  std::string basis;
};

/// Bytes.
struct MemoryEstimate {
  double program = 0;  ///< code, libraries, what the BLAS keeps for itself
  double weights = 0, gradients = 0, moments = 0, activations = 0;
  double total() const { return program + weights + gradients + moments + activations; }
};

/// Runs a shard (or, where that would take long, a smaller one), and asks how much was in use at a
/// time; the rest is arithmetic. Text and its tokens are not counted, nor is decoding.
MemoryEstimate estimate_memory(const Config& config, const Model& model, const StepWork& work,
                               std::int64_t source_vocabulary, std::int64_t target_vocabulary);

}  // namespace heed
