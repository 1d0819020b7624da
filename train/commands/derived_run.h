#pragma once
/// Run folders whose weights are made from those of another run: what `heed prune` and `heed
/// quantize` write.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/base/files.h"
#include "train/commands/trained_model.h"
#include "train/run/run_folder.h"
#include "train/run/run_record.h"

namespace heed {

struct DerivedRun {
  std::string from;  ///< the original run
  RunFolder to;
  bool overwrite = false;
  std::vector<std::string> command;
};

/// Throws Error(usage) if the new run's folder is the original's, or holds what may not be replaced;
/// Error(locked) if a process is using it.
void check_destination(const DerivedRun& run);

/// Writes the new run: this config, the original's tokenizers, and one checkpoint, of the step of the
/// original's weights, with `record` as its state and without optimizer state.
void write_derived_run(const DerivedRun& run, const TrainedModel& original, const Config& config,
                       const SplitSums& sums, const nlohmann::json& record,
                       const std::function<void(FileWriter&)>& write_model);

/// {"kind": "pruned", "from": "runs/a", "weights": …}
nlohmann::json record_of(const DerivedRun& run, const TrainedModel& original,
                         const std::string& kind);
/// Prints the record and the new run's folder as JSON, or `text`; and where the new run is.
void report_derived_run(const DerivedRun& run, nlohmann::json record, const std::string& text,
                        bool json);

}  // namespace heed
