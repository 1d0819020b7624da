#pragma once
/// The list that `heed runs` prints: the runs in a folder and its subfolders.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/results/comparison.h"

namespace heed {

enum class RunState { running, finished, stopped, no_checkpoint, pruned, quantised, broken };

struct RunLine {
  RunResult result;  ///< without metrics if the run has none yet or is broken
  RunState state = RunState::broken;
  std::string error;  ///< cause, if the run is broken
  /// The last recorded step or, in the states stopped, pruned and quantised, that of the newest
  /// checkpoint.
  std::int64_t step = 0;
  double seconds = 0;  ///< training time in seconds
  /// The last change of config.yaml, run.json, metrics.jsonl or train.log, in seconds since 1970.
  std::int64_t changed = 0;
};

/// The runs up to four levels below `folder`, and `folder` itself if it is a run, the most recently
/// changed last. Follows links; skips hidden folders and folders named like those of a run, such as
/// checkpoints. A folder is a run if it contains config.yaml or run.json, and also checkpoints,
/// metrics.jsonl or heed's lock. Loads no plugins. A run that cannot be read is `broken`. Throws
/// Error(usage) if `folder` is not a folder.
std::vector<RunLine> list_runs(const std::string& folder);

/// A table; ages are relative to `now`, in seconds since 1970.
std::string text_of(const std::vector<RunLine>& runs, std::int64_t now);
nlohmann::json json_of(const std::vector<RunLine>& runs);

}  // namespace heed
