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

/// The SHA-256 of the teacher's weights (train.distill.teacher); "" without a teacher.
std::string teacher_sum(const Config& config);

/// Writes the tokenizers, run.json and config.yaml of a new run. run.json contains, among others,
/// version, compiler, flags, processor, BLAS, seed, command and the git revision (if there is one).
/// It also contains the SHA-256 of config.yaml, of the tokenizers' files, of the plugins, of the
/// teacher's weights, and of each split's token ids.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// Replaces the config (except the number of threads) and the data in the records of a resumed run,
/// so that later commands need no overrides.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) if a tokenizer has changed since the run began, because token ids would
/// then refer to different tokens. Returns notes for the user, for example that config.yaml was
/// edited, or that nothing can be compared because run.json is missing or broken.
std::vector<std::string> check_files(const RunFolder& run);

/// A sentence for each plugin of this config that differs from those in run.json. Empty if run.json
/// is missing or lists no plugins.
std::vector<std::string> changed_plugins(const RunFolder& run, const Config& config);

/// The differences of program, plugins, machine, teacher and data from those in run.json, one line
/// each. With any of them, the bits of a resumed run may differ from those of an uninterrupted run.
/// Empty if run.json is missing.
std::vector<std::string> environment_changes(const RunFolder& run, const Config& config,
                                             const SplitSums& sums);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use environment_changes")]] inline std::vector<std::string> changed_surroundings(
    const RunFolder& run, const Config& config, const SplitSums& sums) {
  return environment_changes(run, config, sums);
}

}  // namespace heed
