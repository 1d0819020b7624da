#pragma once
/// How much memory training will take, and how much there is.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/session.h"

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
  double weights = 0, gradients = 0, moments = 0;
  std::optional<double> activations;  ///< none: not measured
  double total() const { return program + weights + gradients + moments + activations.value_or(0); }
};

/// Bytes of this machine, swap included, or what its container may take.
double machine_memory();

/// What a model takes at least while it is trained, whatever its batches: no activations, and
/// gradients of one shard.
MemoryEstimate least_memory(const Config& config, const Model& model);

/// Runs a shard (or, where that would take long, a smaller one), and asks how much was in use at a
/// time; the rest is arithmetic. Text and its tokens are not counted, nor is decoding.
MemoryEstimate estimate_memory(const Config& config, const Model& model, const StepWork& work,
                               const VocabularySizes& vocabulary);

}  // namespace heed
