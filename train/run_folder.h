#pragma once
/// A run folder: everything about a run but its data, which stays where the config says. Enough to
/// decode, or to give away.
///
///   config.yaml  run.json  train.log  metrics.jsonl  tokenizer.*  checkpoints/step-…  best  last
///   average/
#include <filesystem>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "train/config.h"

namespace heed {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.yaml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path log() const { return path / "train.log"; }
  std::filesystem::path average() const { return path / "average"; }
};

/// Throws Error(usage) where the folder holds a run already, with what to do about it.
void refuse_existing_run(const RunFolder& run);
/// Throws Error(locked) where another process is working on a run in the folder.
void refuse_busy_run(const RunFolder& run);
/// Removes what a run has left in its folder, but for its lock, which the caller holds.
void clear_run(const RunFolder& run);
/// Writes config.yaml, run.json and the tokenizers.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const std::vector<std::string>& command);
/// The config of a run folder; throws Error(bad_input) where there is none.
Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides = {});
/// The folder of weights that NAME stands for: best, last, average, a step number, or a path.
/// Empty: the average where there is one, else best, else last.
std::filesystem::path find_weights(const RunFolder& run, const std::string& name);

/// Version, machine, compiler, BLAS, command: what the same bits depend on. The text of run.json.
std::string describe_run(const Config& config, const std::vector<std::string>& command);
/// What run.json says of program and machine that is not so here, a line for each: with these, a
/// run that is gone on with may not give the bits it would have given.
std::vector<std::string> changed_surroundings(const RunFolder& run, const Config& config);

}  // namespace heed
