#pragma once
/// run.json: what a run was started with, as far as its bits depend on it.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "train/run/run_folder.h"

namespace heed {

/// SHA-256 of what training sees of each split: ids, and where sequences end. "" for an empty one.
struct SplitSums {
  std::string train, valid, test;
};

/// The object in run.json; null if there is none. Throws Error(bad_input) if it is damaged.
nlohmann::json read_run_json(const RunFolder& run);

/// The SHA-256 of the weights that teach (train.distill.teacher); empty if none do.
std::string teacher_sum(const Config& config);

/// Writes the tokenizers, run.json and config.yaml of a new run. run.json has version, compiler,
/// flags, processor, BLAS, seed, command and the git revision (if there is one), and the SHA-256 of
/// config.yaml, of the tokenizers' files, of the plugins, and of each split as token ids.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// Records this config (except for the number of threads) and these data as those of a resumed run,
/// so that later commands need not be given the keys again.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) if a tokenizer has changed since the run began: ids would mean other
/// words. Returns notes for the user, one per line: config.yaml was edited; run.json is missing or
/// broken, so that nothing can be compared.
std::vector<std::string> check_files(const RunFolder& run);

/// The plugins of this config that differ from those in run.json, one per line. Empty if run.json is
/// missing or says nothing of plugins.
std::vector<std::string> changed_plugins(const RunFolder& run, const Config& config);

/// How program, plugins, machine and data differ from those in run.json, one difference per line: the bits
/// of a resumed run may then differ from those of an uninterrupted one. Empty if run.json is
/// missing.
std::vector<std::string> environment_changes(const RunFolder& run, const Config& config,
                                             const SplitSums& sums);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use environment_changes")]] inline std::vector<std::string> changed_surroundings(
    const RunFolder& run, const Config& config, const SplitSums& sums) {
  return environment_changes(run, config, sums);
}

}  // namespace heed
