#pragma once
/// How much memory there is, and how much training takes at least.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"

namespace heed {

/// What training takes, in bytes.
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

}  // namespace heed
