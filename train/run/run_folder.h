#pragma once
/// A run folder: the files of a run except its data, which remain at the paths in the config. The
/// folder is sufficient for decoding and for sharing the model.
///
///   config.yaml  run.json  train.log  metrics.jsonl  outputs.jsonl  tokenizer.*
///   checkpoints/step-…  best  last  average/  tensorboard/
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"

namespace heed {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.yaml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path outputs() const { return path / "outputs.jsonl"; }
  /// What `heed eval` has measured, one record for each call.
  std::filesystem::path evaluations() const { return path / "evaluations.jsonl"; }
  std::filesystem::path log() const { return path / "train.log"; }
  std::filesystem::path average() const { return path / "average"; }
  /// The folder in which a run is written that replaces this one when it is complete.
  std::filesystem::path replacement() const { return path / ".new.tmp"; }
};

/// Throws Error(usage) if a new run cannot use the folder, because it contains a run or files that
/// may not belong to one, or is inside another run; the message lists the alternatives. Throws Error(locked) instead if another process is using the folder.
void refuse_existing_run(const RunFolder& run);
/// Throws Error(usage) if the folder contains files named like those of a run, but no run, or if it
/// is inside another run. Throws Error(locked) instead if another
/// process is using the folder. Accepts a run, even one that another process is using.
void refuse_foreign_folder(const RunFolder& run);
/// Throws Error(bad_input), naming the path, if an entry of the folder is not of the kind that heed
/// makes: files and folders, and the links `last` and `best` to a checkpoint. A folder that was
/// received from somebody else could otherwise make heed read and write files elsewhere.
void check_kinds(const RunFolder& run);
/// The folder of the run, if the path, with its links followed, is that of one of a run's files or
/// in one of its folders, such as RUN/config.yaml or RUN/checkpoints/x, whether or not it exists.
/// RUN/reports and files that users keep in the folder do not belong to the run.
std::optional<std::filesystem::path> run_of(const std::filesystem::path& file);
/// Throws Error(usage) if a new run, sweep or export would be in one of the folders that heed writes
/// in another run, RUN/reports among them. `option` is the one that chooses the folder.
void refuse_inside_run(const std::filesystem::path& folder, std::string_view option = "--run");
/// Removes a run's files, except the lock, from its folder. The caller must hold the lock.
void clear_run(const RunFolder& run);
/// Replaces a run's files, except the lock, with those of its replacement(). The caller must hold the
/// lock.
void replace_run(const RunFolder& run);
/// The config of a run folder. Throws Error(usage) if it is missing, and the errors of check_kinds
/// and read_config.
Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides = {},
                       PluginUse plugins = PluginUse::load);
/// Throws the errors of read_run_config, and Error(usage) if the folder contains neither a valid
/// run.json nor a checkpoint, or Error(locked) instead if another process is starting a run.
void require_run(const RunFolder& run, const std::vector<std::string>& overrides);
/// The permitted values of --weights for a message: "; available: best, last, 100, 200"; "" if
/// there are none.
std::string available_weights(const RunFolder& run);
/// "runs/a/", as the completion of a shell leaves it, without its last slashes.
std::string without_last_slash(const std::string& folder);
/// The folder of the weights `name`: best, last, average, a step number, or a path. If the name is
/// empty: the average if it exists, otherwise best, otherwise last. Throws Error(bad_input) if
/// there are no such weights, and the errors of check_kinds.
std::filesystem::path find_weights(const RunFolder& run, const std::string& name);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use available_weights")]] inline std::string weights_there(const RunFolder& run) {
  return available_weights(run);
}

}  // namespace heed
