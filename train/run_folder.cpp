#include "train/run_folder.h"

#include <fmt/format.h>

#include "autograd/error.h"
#include "train/checkpoint_folder.h"
#include "train/files.h"

namespace heed {

void refuse_existing_run(const RunFolder& run) {
  if (!std::filesystem::exists(run.config())) {
    if (!std::filesystem::exists(run.path / "checkpoints")) return;
    throw Error(Exit::usage, fmt::format("{} holds checkpoints, but no config.yaml: put it "
                                         "back to resume, or replace the run with --overwrite, "
                                         "which removes them",
                                         run.path.string()));
  }
  throw Error(
      Exit::usage,
      fmt::format("{} already holds a run: go on with it by `heed resume {}`, choose another "
                  "folder with --run, or replace it with --overwrite",
                  run.path.string(), run.path.string()));
}

void refuse_foreign_folder(const RunFolder& run) {
  for (const char* mark : {"run.json", ".lock"}) {  // the lock stays where clearing was cut short
    if (std::filesystem::exists(run.path / mark)) return;
  }
  for (const std::filesystem::path& name : {run.config(), run.path / "checkpoints"}) {
    if (!std::filesystem::exists(name)) continue;
    throw Error(
        Exit::usage,
        fmt::format("{} is not a run's (there is no run.json), and --overwrite would remove "
                    "it: choose another folder with --run",
                    name.string()));
  }
}

void clear_run(const RunFolder& run) {
  remove_tree(run.config());  // first: from here on this is no run,
  sync_folder(run.path);      // also after a power cut
  for (const char* name : {"run.json", "metrics.jsonl", "metrics.jsonl.damaged", "train.log",
                           "best", "last", "average"})
    remove_tree(run.path / name);
  for (const char* side : {"tokenizer", "source", "target"}) {
    for (const char* kind : {".model", ".vocab"})
      remove_tree(run.path / (std::string(side) + kind));
  }
  remove_tree(run.path / "checkpoints");  // last: refuse_existing_run looks for it
}

Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides) {
  std::error_code ignored;
  if (!std::filesystem::exists(run.config(), ignored)) {
    throw Error(Exit::bad_input,
                fmt::format("{}: no run here (there is no config.yaml)",
                            std::filesystem::absolute(run.path).lexically_normal().string()));
  }
  if (std::filesystem::is_other(run.config(), ignored)) {  // a pipe: reading might never end
    throw Error(Exit::bad_input, run.config().string() + ": not a regular file");
  }
  return read_config(run.config().string(), overrides);
}

/// "; there are: best, last, 100, 200"
std::string weights_there(const RunFolder& run) {
  std::vector<std::string> names;
  for (const char* name : {"average", "best", "last"}) {
    if (std::filesystem::exists(run.path / name)) names.emplace_back(name);
  }
  for (const std::int64_t step : CheckpointFolder(run.path).steps())
    names.push_back(std::to_string(step));
  return names.empty() ? "" : fmt::format("; there are: {}", fmt::join(names, ", "));
}

std::filesystem::path find_weights(const RunFolder& run, const std::string& name) {
  std::vector<std::filesystem::path> choices;
  if (name.empty()) {
    choices = {run.average(), run.path / "best", run.path / "last"};
  } else if (name == "best" || name == "last" || name == "average") {
    choices = {run.path / name};
  } else if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 18) {
    choices = {CheckpointFolder(run.path).folder_of(std::stoll(name))};
  } else {
    choices = {name};
  }
  // The first that is there at all. If it is damaged, no other is taken in its place in silence.
  for (const auto& choice : choices) {
    if (std::filesystem::exists(std::filesystem::symlink_status(choice))) return choice;
  }
  throw Error(Exit::bad_input,
              fmt::format("{}: no weights{}{}", run.path.string(),
                          name.empty() ? " yet" : " called " + name, weights_there(run)));
}

}  // namespace heed
