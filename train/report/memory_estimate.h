#pragma once
/// The work of a training step and the memory of training, measured by running a small part of it.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"

namespace heed {

/// An average training step.
struct StepWork {
  double sequences = 0, source_tokens = 0, target_tokens = 0;
  std::optional<double> flops;  ///< model FLOPs (product_log.h); none: not counted
  std::string basis;
};

/// Bytes.
struct MemoryEstimate : MinMemory {
  std::optional<double> activations;  ///< none: not measured
  double total() const { return MinMemory::total() + activations.value_or(0); }
};
inline MemoryEstimate at_least(const Config& config, const Model& model) {
  return {min_memory(config, model), std::nullopt};
}

/// Runs a shard of sequences of average length (a smaller one if that would take long). Sets
/// work.flops from the counted products, and estimates the memory from the peak in use; the rest is
/// arithmetic. Text, its tokens and decoding are not included.
MemoryEstimate probe_training(const Task& task, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work);

}  // namespace heed
