#pragma once
/// What training takes, measured by running a little of it: the work of a step, and the memory.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"

namespace heed {

/// An average training step.
struct StepWork {
  double sequences = 0, source_tokens = 0, target_tokens = 0;
  std::optional<double> flops;  ///< model FLOPs (kernels/gemm/product_log.h); none: not counted
  std::string basis;
};

/// Bytes.
struct MemoryEstimate : LeastMemory {
  std::optional<double> activations;  ///< none: not measured
  double total() const { return LeastMemory::total() + activations.value_or(0); }
};
inline MemoryEstimate at_least(const Config& config, const Model& model) {
  return {least_memory(config, model), std::nullopt};
}

/// Runs a shard of sequences of average length (or, where that would take long, a smaller one). Sets
/// work.flops from the products that were counted, and estimates the memory from how much was in use
/// at a time; the rest is arithmetic. Text, its tokens and decoding are left out.
MemoryEstimate probe_training(const Task& task, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work);

}  // namespace heed
