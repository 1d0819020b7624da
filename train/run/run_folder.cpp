#include "train/run/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_lock.h"

namespace heed {

namespace {

/// The files of a run other than config.yaml, checkpoints/ and .lock.
std::vector<std::string> names_of_a_run() {
  std::vector<std::string> names{"run.json",
                                 "metrics.jsonl",
                                 "metrics.jsonl.damaged",
                                 "outputs.jsonl",
                                 "evaluations.jsonl",
                                 "train.log",
                                 "best",
                                 "last",
                                 "average",
                                 "tensorboard"};
  for (const char* side : {"tokenizer", "source", "target"}) {
    for (const char* kind : {".model", ".vocab", ".imported"})
      names.push_back(std::string(side) + kind);
  }
  return names;
}

/// Throws Error(bad_input) unless `last` or `best` is missing, a link to a checkpoint of the run or,
/// in a copy made without links, a folder.
void require_checkpoint_link(const std::filesystem::path& entry) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(entry, error);
  if (error) return require_kind(entry, std::filesystem::file_type::directory);
  if (target.parent_path() == "checkpoints" && target.filename().string().starts_with("step-"))
    return;
  throw Error(Exit::bad_input,
              "{}: a link to {}, which is no checkpoint of this run: remove the link; heed resume "
              "makes it again",
              entry.string(), shown(target.string(), 200));
}

/// True if the file is the record of a run. Another program may have written a file with this name.
bool is_record(const std::filesystem::path& file) {
  try {
    const nlohmann::json record = parse_json(read_bytes(file, 1 << 20), file.string());
    return record.is_object() && record.contains("seed") && record.contains("blas");
  } catch (const Error& error) {
    if (error.code != Exit::bad_input) throw;
    return false;
  }
}

/// The first existing path among `names` and names_of_a_run(), in this folder; empty if there is
/// none.
std::filesystem::path first_existing(const RunFolder& run, std::vector<std::string> names) {
  for (std::string& name : names_of_a_run()) names.push_back(std::move(name));
  for (const std::string& name : names)
    if (path_exists(run.path / name)) return run.path / name;
  return {};
}

/// Throws Error(locked) if another heed process is using the folder, otherwise Error(usage).
[[noreturn]] void refuse(const RunFolder& run, const std::string& message) {
  RunLock::refuse_if_held(run.path);
  throw Error(Exit::usage, message);
}

/// True if the folder contains a run's lock or record. The lock also identifies a run whose removal
/// was interrupted or whose record is broken.
bool is_run(const RunFolder& run) {
  return RunLock::has_mark(run.path, false) || is_record(run.path / "run.json");
}

/// Throws for a folder that heed does not replace, even with --overwrite. `found`: the file or
/// folder in it that the message names.
[[noreturn]] void refuse_foreign(const RunFolder& run, const std::filesystem::path& found) {
  const bool resumable = path_exists(run.config()) && !CheckpointFolder(run.path).steps().empty();
  refuse(run,
         fmt::format(
             "{} is not known to belong to a run (there is no valid run.json), so heed does "
             "not replace it, even with --overwrite: {}choose another folder with "
             "--run, or move it away",
             found.string(),
             resumable ? fmt::format("continue the run with `heed resume {}`, ", run.path.string())
                       : ""));
}

}  // namespace

namespace {

/// The run that has `file` as one of its files or in one of its folders, `with` further ones.
std::optional<std::filesystem::path> owner(const std::filesystem::path& file,
                                           std::initializer_list<std::string> with) {
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  std::vector<std::string> names = names_of_a_run();
  names.insert(names.end(), {"config.yaml", ".lock", "checkpoints"});
  names.insert(names.end(), with);
  for (auto part = real; !error && part != part.root_path(); part = part.parent_path()) {
    if (std::ranges::find(names, part.filename().string()) != names.end() &&
        is_run({part.parent_path()}))
      return part.parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::filesystem::path> run_of(const std::filesystem::path& file) {
  return owner(file, {});
}

void refuse_inside_run(const std::filesystem::path& folder, std::string_view option) {
  if (const auto outer = owner(folder, {"reports"}))
    throw Error(Exit::usage, "{} is inside the run {}: choose another folder with {}",
                folder.string(), outer->string(), option);
}

void refuse_existing_run(const RunFolder& run) {
  refuse_inside_run(run.path);
  const std::string folder = run.path.string();
  for (const std::filesystem::path& found : {run.config(), run.path / "checkpoints"}) {
    if (!path_exists(found)) continue;
    if (!is_run(run)) refuse_foreign(run, found);
    if (found == run.config())
      refuse(run, fmt::format("{} already holds a run: continue it with `heed resume {}`, choose "
                              "another folder with --run, or replace it with --overwrite",
                              folder, folder));
    refuse(
        run,
        fmt::format(
            "{} holds checkpoints, but no config.yaml: restore config.yaml to resume, or replace "
            "the run with --overwrite, which removes the checkpoints",
            folder));
  }
  const std::filesystem::path found = first_existing(run, {".lock"});
  // Files beside heed's lock are accepted: they belong to a run that was killed at its start or is
  // starting. The lock is checked last, because it may have been created in the meantime.
  if (found.empty() || RunLock::has_mark(run.path, true)) return;
  refuse_foreign(run, found);
}

void refuse_foreign_folder(const RunFolder& run) {
  refuse_inside_run(run.path);
  const std::filesystem::path found = first_existing(run, {"config.yaml", "checkpoints"});
  if (is_run(run)) return;
  const bool foreign_lock = path_exists(run.path / ".lock") && !RunLock::has_mark(run.path, true);
  if (found.empty() && !foreign_lock) return;
  refuse_foreign(run, found.empty() ? run.path / ".lock" : found);
}

namespace {

void remove_files(const RunFolder& run) {
  // The config is removed first and durably: without it, the folder is not a run.
  remove_tree(run.config());
  sync_folder(run.path);
  for (const std::string& name : names_of_a_run()) remove_tree(run.path / name);
  remove_tree(run.path / "checkpoints");  // removed last: refuse_existing_run checks it
}

}  // namespace

void clear_run(const RunFolder& run) {
  remove_tree(run.replacement());
  remove_files(run);
}

void replace_run(const RunFolder& run) {
  remove_files(run);
  std::vector<std::string> names = names_of_a_run();
  names.insert(names.end(), {"checkpoints", "config.yaml"});  // a folder with a config is a run
  for (const std::string& name : names) {
    if (path_exists(run.replacement() / name))
      rename_durably(run.replacement() / name, run.path / name);
  }
  remove_tree(run.replacement());
}

void require_run(const RunFolder& run, const std::vector<std::string>& overrides) {
  read_run_config(run, overrides);
  if (is_record(run.path / "run.json") || !CheckpointFolder(run.path).steps().empty()) return;
  RunLock::refuse_if_held(run.path);  // another process may be starting a run
  throw Error(Exit::usage,
              "{}: not a run (there is a config.yaml, but neither a run.json nor a checkpoint)",
              std::filesystem::absolute(run.path).lexically_normal().string());
}

void check_kinds(const RunFolder& run) {
  using std::filesystem::file_type;
  require_kind(run.config(), file_type::regular);
  require_kind(run.path / ".lock", file_type::regular);
  std::vector<std::filesystem::path> folders{run.path / "checkpoints", run.average(),
                                             run.path / "tensorboard", run.path / "reports"};
  for (const char* const link : {"best", "last"}) {  // folders in a copy made without links
    std::error_code none;
    if (std::filesystem::symlink_status(run.path / link, none).type() == file_type::directory)
      folders.push_back(run.path / link);
  }
  for (const std::string& name : names_of_a_run()) {
    const std::filesystem::path entry = run.path / name;
    if (name == "best" || name == "last")
      require_checkpoint_link(entry);
    else if (std::ranges::find(folders, entry) == folders.end())
      require_kind(entry, file_type::regular);
  }
  for (const std::filesystem::path& folder : folders) {
    require_kind(folder, file_type::directory);
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(
        folder, std::filesystem::directory_options::skip_permission_denied, error);
    for (const std::filesystem::recursive_directory_iterator end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      if (at->symlink_status(ignored).type() != file_type::directory)
        require_kind(at->path(), file_type::regular);
    }
    // Another process may be removing an old checkpoint.
    if (error && error != std::errc::no_such_file_or_directory)
      throw_io("list", folder, error.value());
  }
}

Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides,
                       PluginUse plugins) {
  if (!path_exists(run.config())) {
    const bool other = path_exists(run.path / "config.json");
    throw Error(Exit::usage, "{}: not a run (there is no config.yaml{})",
                std::filesystem::absolute(run.path).lexically_normal().string(),
                other ? "; heed import makes a run of a folder of transformers" : "");
  }
  check_kinds(run);
  return read_config(run.config().string(), overrides, true, plugins);
}

std::string available_weights(const RunFolder& run) {
  std::vector<std::string> names;
  for (const char* name : {"average", "best", "last"}) {
    std::error_code ignored;
    if (std::filesystem::exists(run.path / name, ignored)) names.emplace_back(name);
  }
  for (const std::int64_t step : CheckpointFolder(run.path).steps())
    names.push_back(std::to_string(step));
  return names.empty() ? "" : fmt::format("; available: {}", fmt::join(names, ", "));
}

std::filesystem::path find_weights(const RunFolder& run, const std::string& name) {
  check_kinds(run);
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
  // The first choice that exists. If it is damaged, no other choice silently replaces it.
  for (const auto& choice : choices) {
    if (std::filesystem::exists(std::filesystem::symlink_status(choice))) return choice;
  }
  throw Error(Exit::bad_input, "{}: no weights{}{}", run.path.string(),
              name.empty() ? " yet" : " called " + name, available_weights(run));
}

std::string without_last_slash(const std::string& folder) {
  const std::size_t last = folder.find_last_not_of('/');
  return last == std::string::npos ? folder : folder.substr(0, last + 1);
}

}  // namespace heed
