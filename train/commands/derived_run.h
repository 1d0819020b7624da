#pragma once
/// Run folders with weights derived from another run, written by `heed prune` and `heed quantize`.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/io/files.h"
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

/// Throws Error(usage) if the new run's folder is that of the original run, is inside another
/// run, or contains files that must not be replaced (without `overwrite`,
/// also if it contains a run); Error(locked) if another process is using it.
void check_destination(const DerivedRun& run);

/// What the new run takes over: the step of its checkpoint, the tokenizers, and the checksums of the data
/// for run.json.
struct DerivedFrom {
  std::int64_t step = 0;
  const Tokenizers& tokenizers;
  SplitSums sums = {};

  /// From a run: its tokenizers, its recorded_sums(), and the step of its weights: the last one if
  /// they are an average, 0 if unknown.
  static DerivedFrom run(const std::string& run, const TrainedModel& original);
};

/// Writes the new run: `config`, the original's tokenizers, run.json, `record` in metrics.jsonl, and one
/// checkpoint without optimizer state. The checkpoint consists of model.safetensors, which
/// `write_model` writes, and state.json with `record` and trained_with().
void write_derived_run(const DerivedRun& run, const DerivedFrom& original, const Config& config,
                       const nlohmann::json& record,
                       const std::function<void(FileWriter&)>& write_model);
/// Imports the folder `run.from` of the library transformers (import_huggingface) as a run. Returns its
/// record: {"kind": "imported", "from": …, "class": "GPT2LMHeadModel", …} (import.cpp).
nlohmann::json import_run(const DerivedRun& run);

/// The record of the new run: {"kind": "pruned", "from": "runs/a", "weights": …}. If the original is
/// itself derived, "earlier" is a list of its records, the first derivation first.
nlohmann::json record_of(const DerivedRun& run, const TrainedModel& original,
                         const std::string& kind);
/// Prints `text` or, with `json`, the record and the new run's folder. Then prints to standard
/// error a message that names the folder.
void report_derived_run(const DerivedRun& run, nlohmann::json record, const std::string& text,
                        bool json);

}  // namespace heed
