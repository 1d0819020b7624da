#pragma once
/// What `heed runs` shows about each run below a folder.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/report/runs/comparison.h"

namespace heed {

enum class RunState { running, finished, stopped, no_checkpoint, pruned, quantised, broken };

struct RunLine {
  RunResult result;  ///< its figures are empty if there are none yet, or if the run is broken
  RunState state = RunState::broken;
  std::string error;         ///< of a broken run: what is wrong
  std::int64_t step = 0;     ///< of a stopped run: where resume continues
  double seconds = 0;        ///< of training
  std::int64_t changed = 0;  ///< the last time a record was written, in seconds since 1970
};

/// The run folders below `folder`, or `folder` itself, the most recently changed last. Searches four
/// levels deep and follows links. A folder counts if it holds a config.yaml or a run.json, and also
/// checkpoints, metrics or heed's lock. Loads no plugins. A run that cannot be read is `broken`.
/// Throws Error(usage) if there is no such folder.
std::vector<RunLine> list_runs(const std::string& folder);

/// A table; ages are relative to `now`, in seconds since 1970.
std::string text_of(const std::vector<RunLine>& runs, std::int64_t now);
nlohmann::json json_of(const std::vector<RunLine>& runs);

}  // namespace heed
