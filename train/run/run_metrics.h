#pragma once
/// Records the metrics of a run while it trains.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "train/run/event_file.h"
#include "train/run/jsonl.h"
#include "train/run/run_folder.h"

namespace heed {

/// The numbers of a record {"kind": K, "step": N, …}. "loss": 1 becomes the scalar K/loss. "norms":
/// {"a": 1} becomes K.norms/a, so that TensorBoard shows the norms as a separate group.
std::vector<TaggedScalar> scalars_of(const nlohmann::json& record);

/// Cuts metrics.jsonl before its first damaged line or the first record that a run resumed at `step`
/// writes again; `validation_due`: it validates this step again. Returns a message if a line was
/// damaged, otherwise "".
std::string repair_metrics(const RunFolder& run, std::int64_t step, bool validation_due);

/// Writes metrics.jsonl and, with train.tensorboard, event files in tensorboard/. Each process
/// that trains a run writes one event file, which begins with the config as text.
class RunMetrics {
 public:
  /// `step`: the step from which the run continues; 0 for a new run. Throws Error(io).
  RunMetrics(const RunFolder& run, const Config& config, std::int64_t step);
  /// Appends a record to each file. Throws the Error(io) of AppendFile::append.
  void append(const nlohmann::json& record);
  void sync();

 private:
  JsonlWriter lines_;
  std::optional<EventFile> events_;
};

}  // namespace heed
