#pragma once
/// run.json: the program, machine, data and options on which the bits of a run depend.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "train/run/run_folder.h"

namespace heed {

/// SHA-256 of the token ids and sequence ends of each split; "" for an empty split.
struct SplitSums {
  std::string train, valid, test;
};

/// The object in run.json; null if there is none. Throws Error(bad_input) if it is damaged.
nlohmann::json read_run_json(const RunFolder& run);

/// The SHA-256 of the teacher's weights (train.distill.teacher); empty without a teacher.
std::string teacher_sum(const Config& config);

/// Writes the tokenizers, run.json and config.yaml of a new run. run.json contains version,
/// compiler, flags, processor, BLAS, seed, command and the git revision (if there is one), and the
/// SHA-256 of config.yaml, of the tokenizers' files, of the plugins, and of each split as token
/// ids.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// Records this config (except the number of threads) and these data as those of a resumed run, so
/// that later commands need no overrides.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) if a tokenizer has changed since the run began: token ids would refer to
/// different tokens. Returns notes for the user: config.yaml was edited, or run.json is missing or
/// broken, so that nothing can be compared.
std::vector<std::string> check_files(const RunFolder& run);

/// The plugins of this config that differ from those in run.json, one per line. Empty if run.json
/// is missing or has no plugins.
std::vector<std::string> changed_plugins(const RunFolder& run, const Config& config);

/// The differences of program, plugins, machine and data from those in run.json, one per line. With
/// any of them, the bits of a resumed run may differ from those of an uninterrupted one. Empty if
/// run.json is missing.
std::vector<std::string> environment_changes(const RunFolder& run, const Config& config,
                                             const SplitSums& sums);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use environment_changes")]] inline std::vector<std::string> changed_surroundings(
    const RunFolder& run, const Config& config, const SplitSums& sums) {
  return environment_changes(run, config, sums);
}

}  // namespace heed
