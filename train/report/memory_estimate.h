#pragma once
/// What training takes: the work of a step, the memory; and how much memory there is.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/session.h"

namespace heed {

/// An average training step.
struct StepWork {
  double sequences = 0, source_tokens = 0, target_tokens = 0;
  std::optional<double> flops;  ///< model FLOPs (kernels/gemm/product_log.h); none: not counted
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

/// Runs a sequence of average length, and then a shard (or, where that would take long, a smaller
/// one). Sets work.flops from the products that were counted, and estimates the memory from how much
/// was in use at a time; the rest is arithmetic. Text, its tokens and decoding are left out.
MemoryEstimate probe_training(const Config& config, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work);

}  // namespace heed
