#pragma once
/// A run folder: everything about a run but its data, which stay where the config says. It is enough
/// to decode with, or to give to others.
///
///   config.yaml  run.json  train.log  metrics.jsonl  tokenizer.*  checkpoints/step-…  best  last
///   average/
#include <filesystem>
#include <string>
#include <vector>

#include "train/config/config.h"

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
/// Throws Error(usage) where the folder holds files that clear_run would remove, but not those of a
/// run.
void refuse_foreign_folder(const RunFolder& run);
/// Removes what a run has left in its folder, but for its lock, which the caller holds.
void clear_run(const RunFolder& run);
/// The config of a run folder; throws Error(usage) where there is none, as for a missing CONFIG.
Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides = {});
/// Throws Error(usage) where no run has left anything but, perhaps, a config.yaml.
void require_run(const RunFolder& run);
/// What --weights may name here, for a message: "; there are: best, last, 100, 200", or nothing.
std::string weights_there(const RunFolder& run);
/// The folder of weights that NAME means: best, last, average, a step number, or a path.
/// Empty: the average where there is one, else best, else last.
std::filesystem::path find_weights(const RunFolder& run, const std::string& name);

}  // namespace heed
