#pragma once
/// run.json: the program, machine, data and options that determine the exact (bitwise) results of a
/// run.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"

namespace heed {

/// SHA-256 of the encoded samples of each split: of the token ids and sequence ends, and of the
/// values of inputs other than text. "" for an empty split.
struct SplitSums {
  std::string train, valid, test;
};

/// The object in run.json; null if the file is missing. Throws Error(bad_input) if it is damaged.
nlohmann::json read_run_json(const RunFolder& run);

/// The SHA-256 of the teacher's weights (train.distill.teacher); "" without a teacher.
std::string teacher_sum(const Config& config);

/// What multiplies in bf16 in a run of this config: the unit, on which the last bits depend, or the
/// reason why float32 is used instead. Empty if the config does not use bf16.
std::string bf16_unit_of(const Config& config);

/// Writes the tokenizers, run.json and config.yaml of a new run. run.json describes the program
/// (version, compiler, flags, BLAS, bf16), the machine, the seed, the command and the git revision (if
/// there is one). It also contains the SHA-256 of config.yaml, of the tokenizers' files, of the
/// plugins, of the teacher's weights, and of each split (SplitSums).
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// The SHA-256 of the samples of each split in run.json; "" where it has none.
SplitSums recorded_sums(const RunFolder& run);

/// Replaces the config of a resumed run (except the number of threads), and in run.json the seed,
/// shards, plugins, teacher and data, so that later commands need no overrides.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) if a tokenizer has changed since the run began, because token ids would
/// then refer to different tokens. Returns notes for the user, for example that config.yaml was
/// edited, or that nothing can be compared because run.json is missing or broken.
std::vector<std::string> check_files(const RunFolder& run);

/// What the run's weights are trained with, for the state of its checkpoints: the values of the keys
/// that determine how a model uses its weights ({"keys": {"model.heads": "4", …}}), and the SHA-256
/// of the tokenizers' files in the run's folder ({"tokenizers": {"tokenizer.vocab": "…"}}).
nlohmann::json trained_with(const RunFolder& run, const Config& config);

/// The keys of the config with other values than those that the weights in this checkpoint were
/// trained with, one sentence each. Empty for weights of an earlier version of heed, whose state
/// lacks trained_with().
std::vector<std::string> changed_keys(const Config& config, const Checkpoint& weights);
/// The tokenizers of the run that are not those that its weights were trained with, one sentence
/// each, with the file.
std::vector<std::string> changed_tokenizers(const RunFolder& run, const Checkpoint& weights);
/// Throws Error(bad_input) if there are changed_tokenizers().
void require_same_tokenizers(const RunFolder& run, const Checkpoint& weights);
/// Throws Error(bad_input) if there are changed_keys() in the config of the run, or
/// changed_tokenizers().
void require_fit(const RunFolder& run, const Config& config, const Checkpoint& weights);

/// A sentence for each plugin of this config that differs from those in run.json. Empty if run.json
/// is missing or broken or has no list of plugins.
std::vector<std::string> changed_plugins(const RunFolder& run, const Config& config);

/// The differences of program, plugins, machine, teacher and data from those in run.json, one line
/// each. With any of them, a resumed run may differ bitwise from an uninterrupted run. Empty if
/// run.json is missing or broken.
std::vector<std::string> environment_changes(const RunFolder& run, const Config& config,
                                             const SplitSums& sums);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use environment_changes")]] inline std::vector<std::string> changed_surroundings(
    const RunFolder& run, const Config& config, const SplitSums& sums) {
  return environment_changes(run, config, sums);
}

}  // namespace heed
