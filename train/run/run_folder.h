#pragma once
/// A run folder: everything about a run except its data, which stay at the paths in the config. It
/// is sufficient for decoding and for sharing the model.
///
///   config.yaml  run.json  train.log  metrics.jsonl  outputs.jsonl  tokenizer.*  checkpoints/step-…
///   best  last  average/  tensorboard/
#include <filesystem>
#include <string>
#include <vector>

#include "train/config/config.h"

namespace heed {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.yaml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path outputs() const { return path / "outputs.jsonl"; }
  std::filesystem::path log() const { return path / "train.log"; }
  std::filesystem::path average() const { return path / "average"; }
};

/// Throws Error(usage) if the folder already holds a run; the message lists the options.
void refuse_existing_run(const RunFolder& run);
/// Throws Error(usage) if the folder holds files that clear_run would remove but that are not a
/// run's.
void refuse_foreign_folder(const RunFolder& run);
/// The files that make up a run, which no output may overwrite.
std::vector<std::string> files_of(const RunFolder& run);
/// Removes a run's files from its folder, except its lock, which the caller holds.
void clear_run(const RunFolder& run);
/// The config of a run folder; throws Error(usage) if there is none, as for a missing CONFIG.
Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides = {},
                       PluginUse plugins = PluginUse::load);
/// Throws Error(usage) if the folder holds nothing of a run, except perhaps a config.yaml, or if its
/// config with these overrides is wrong.
void require_run(const RunFolder& run, const std::vector<std::string>& overrides);
/// The weights that --weights can name here, for a message: "; available: best, last, 100, 200", or
/// nothing.
std::string available_weights(const RunFolder& run);
/// The folder of weights that NAME means: best, last, average, a step number, or a path.
/// Empty: the average if there is one, else best, else last.
std::filesystem::path find_weights(const RunFolder& run, const std::string& name);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use available_weights")]] inline std::string weights_there(const RunFolder& run) {
  return available_weights(run);
}

}  // namespace heed
