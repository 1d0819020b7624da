#pragma once
/// How much memory training will take, and how much there is.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"

namespace heed {

/// An average training step.
struct StepWork {
  double flops = 0;  ///< of matrix products, forward and backward
  double sequences = 0, source_tokens = 0, target_tokens = 0;
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

/// Runs a shard (or, where that would take long, a smaller one), and asks how much was in use at a
/// time; the rest is arithmetic. Text and its tokens are not counted, nor is decoding.
MemoryEstimate estimate_memory(const Task& task, const Model& model, const StepWork& work,
                               const VocabularySizes& vocabulary);

}  // namespace heed
