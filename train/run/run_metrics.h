#pragma once
/// Where the figures of a run are recorded while it trains.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "train/run/event_file.h"
#include "train/run/jsonl.h"
#include "train/run/run_folder.h"

namespace heed {

/// The numbers of a record {"kind": K, "step": N, …}: "loss": 1 is the scalar K/loss, and "norms":
/// {"a": 1} is K.norms/a, so that TensorBoard shows such a group by itself.
std::vector<TaggedScalar> scalars_of(const nlohmann::json& record);

/// metrics.jsonl and, with train.tensorboard, event files in tensorboard/. A session of a run writes
/// an event file of its own, which begins with the config as text.
class RunMetrics {
 public:
  /// `step`: what the run continues from. Throws Error(io).
  RunMetrics(const RunFolder& run, const Config& config, std::int64_t step);
  /// Throws Error(io); a record that is only partly written is removed again.
  void append(const nlohmann::json& record);
  void sync();

 private:
  JsonlWriter lines_;
  std::optional<EventFile> events_;
};

}  // namespace heed
