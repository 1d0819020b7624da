#pragma once
/// The work of a training step and the memory of training, estimated by running a small shard.
#include <optional>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"

namespace heed {

/// The work of an average training step.
struct StepWork {
  double sequences = 0, source_tokens = 0, target_tokens = 0;
  std::optional<double> flops;  ///< model FLOPs (product_log.h); unset: not counted
  std::string basis;            ///< source of the numbers: "windows of 256 tokens"
};

/// The estimated memory of training, in bytes.
struct MemoryEstimate : MinMemory {
  std::optional<double> activations;  ///< memory while shards run; unset: not measured
  double total() const { return MinMemory::total() + activations.value_or(0); }
};
inline MemoryEstimate at_least(const Config& config, const Model& model) {
  return {min_memory(config, model), std::nullopt};
}

/// Runs a shard of sequences of average length, with fewer sequences if a whole shard would take
/// too long. Sets work.flops from the counted products and estimates the memory from the peak of
/// the shard and from the numbers of shards and threads. The estimate excludes the text, its tokens
/// and decoding.
MemoryEstimate probe_training(const Task& task, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work);

}  // namespace heed
