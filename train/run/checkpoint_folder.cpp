#include "train/run/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"

namespace heed {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kState = "state.json";
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{16} << 20;
constexpr std::int64_t kMinKept = 2;  // minimum number of checkpoints that pruning keeps
constexpr std::string_view kPrefix = "step-";

std::string step_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

/// The step in a name made by step_name; nullopt for other names.
std::optional<std::int64_t> step_in(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() > 30) return std::nullopt;
  std::int64_t step = 0;
  for (const char digit : name.substr(kPrefix.size())) {
    if (digit < '0' || digit > '9' || step > INT64_MAX / 10 - 1) return std::nullopt;
    step = step * 10 + (digit - '0');
  }
  return step_name(step) == name ? std::optional(step) : std::nullopt;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= NAME_MAX && name.front() != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

// ---- folders that appear or disappear atomically ----------------------------------------------

/// Returns `.NAME.END`, the name of a folder while it is written or removed. First removes any
/// folder of this name that a killed process has left. If the system refuses the removal, the name
/// is `.NAME.2.END`, and so on.
fs::path temporary_name(const fs::path& folder, std::string_view end) {
  constexpr int max_names = 9;
  for (int number = 1;; ++number) {
    fs::path name =
        folder.parent_path() / fmt::format(".{}{}.{}", folder.filename().string(),
                                           number > 1 ? fmt::format(".{}", number) : "", end);
    const std::string why = remove_tree_if_allowed(name);
    if (why.empty()) return name;
    if (number == max_names) throw Error(Exit::io, why);
  }
}

/// Renames a complete folder to its final name, replacing any folder of this name, and flushes the
/// parent to disk.
void rename_complete(const fs::path& temporary, const fs::path& folder) {
  sync_folder(temporary);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) return rename_durably(temporary, folder);
  // On most file systems, Linux can exchange two names atomically.
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(folder.parent_path());
    static_cast<void>(remove_tree_if_allowed(temporary));  // the older folder now has this name
    return;
  }
  const fs::path old = temporary_name(folder, "old");
  rename_durably(folder, old);
  try {
    rename_durably(temporary, folder);
  } catch (const Error&) {
    fs::rename(old, folder, ignored);
    throw;
  }
  remove_tree(old);
}

// ---- state.json -----------------------------------------------------------------------------
// {"files": {"model.safetensors": {"bytes": 1234, "sha256": "…"}}, "state": {…}, "step": 1000,
//  "sha256": "…"}
// The outer sha256 is that of the object without this key. Only the canonical form is accepted, so
// that any changed bit is detected.

std::string state_text(const nlohmann::json& content) {
  return content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string sealed(nlohmann::json content) {
  content["sha256"] = sha256_hex(state_text(content));
  return state_text(content);
}

struct FileEntry {
  std::string name;
  std::uint64_t size = 0;
  std::string sha256;
};

/// The checkpoint that state.json describes, with the files that it lists, which have not been
/// checked.
struct Listed : Checkpoint {
  std::vector<FileEntry> files;
};

Listed read_state(const fs::path& folder) {
  const fs::path path = folder / kState;
  const std::string text = read_bytes(path, kMaxStateBytes);
  nlohmann::json content = parse_json(text, path.string());
  try {
    nlohmann::json unsealed = content;
    unsealed.erase("sha256");
    if (content.at("sha256") != sha256_hex(state_text(unsealed)) || state_text(content) != text)
      throw Error(Exit::bad_input, "{}: its content has changed", path.string());
    Listed result{{whole_number(content.at("step")), folder, content.at("state")}, {}};
    for (const auto& [name, about] : content.at("files").items()) {
      if (!is_plain_name(name))
        throw Error(Exit::bad_input, "{}: \"{}\" is not a plain file name", path.string(), name);
      result.files.push_back({name, static_cast<std::uint64_t>(whole_number(about.at("bytes"))),
                              about.at("sha256").get<std::string>()});
    }
    return result;
  } catch (const nlohmann::json::exception&) {
    throw Error(Exit::bad_input, "{}: not the state of a checkpoint", path.string());
  }
}

void check_size(const fs::path& path, const FileEntry& entry) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error) throw cannot_read(path, error.value());
  if (size != entry.size)
    throw Error(Exit::bad_input, "{}: its size is {} instead of {} bytes", path.string(), size,
                entry.size);
  // Files are loaded whole. A sparse file can claim any size, and its checksum would take hours.
  const std::uint64_t memory = std::uint64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  if (size > memory)
    throw Error(Exit::bad_input, "{}: its {} bytes exceed the memory of this machine ({})",
                path.string(), size, memory);
}

void check_content(const fs::path& path, const FileEntry& entry) {
  check_size(path, entry);
  if (sha256_file(path) != entry.sha256)
    throw Error(Exit::bad_input, "{}: its content has changed (its SHA-256 is not that in {})",
                path.string(), kState);
}

/// True if prune counts the checkpoint: it was not saved on request, its state.json is intact, and
/// its files have the right sizes.
bool counts(const fs::path& folder) {
  try {
    const Listed state = read_state(folder);
    for (const FileEntry& entry : state.files) check_size(folder / entry.name, entry);
    return !state.state.contains("on_request");
  } catch (const Error&) {
    return false;
  }
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator at;
  uninterrupted([&] {
    at = fs::directory_iterator(folder, error);
    errno = error.value();
    return error ? -1 : 0;
  });
  for (; !error && at != fs::directory_iterator(); at.increment(error)) found.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory)
    throw_io("list", folder, error.value());
  return found;
}

std::string weights_name(const std::filesystem::path& folder) {
  std::string name = folder.filename().string();
  if (name == "best" || name == "last" || name == "average") return name;
  return name.starts_with("step-") ? "step" : "folder";
}

}  // namespace

Checkpoint check_file(const fs::path& folder, const std::string& name) {
  const Listed state = read_state(folder);
  const auto entry = std::ranges::find(state.files, name, &FileEntry::name);
  if (entry == state.files.end())
    throw Error(Exit::bad_input, "{}: {} has no entry for {}", folder.string(), kState, name);
  check_content(folder / name, *entry);
  return state;
}

Checkpoint open_checkpoint(const fs::path& given) {
  std::error_code error;
  const fs::path folder = fs::canonical(given, error);  // follows `best` and `last`
  if (error) throw cannot_read(given, error.value());
  const Listed state = read_state(folder);
  if (step_in(folder.filename().string()) != state.step)
    throw Error(Exit::bad_input, "{}: holds the checkpoint of step {}", folder.string(),
                state.step);
  for (const FileEntry& entry : state.files) check_content(folder / entry.name, entry);
  return {state.step, given, state.state};
}

fs::path CheckpointFolder::folder_of(std::int64_t step) const {
  return run_ / "checkpoints" / step_name(step);
}

void write_files(const fs::path& folder, std::int64_t step, std::span<const CheckpointFile> files,
                 const nlohmann::json& state) {
  const fs::path temporary = temporary_name(folder, "tmp");
  create_folders(temporary);
  nlohmann::json sums = nlohmann::json::object();
  const auto write = [&](const CheckpointFile& file) {
    FileWriter writer(temporary / file.name);
    file.write(writer);
    writer.finish();
    sums[file.name] = {{"bytes", writer.size()}, {"sha256", writer.sha256()}};
  };
  try {
    for (const CheckpointFile& file : files) {
      if (!is_plain_name(file.name) || file.name == kState || sums.contains(file.name))
        throw Error(Exit::failed, "checkpoint: \"{}\" cannot be a file's name", file.name);
      write(file);
    }
    const std::string text = sealed({{"step", step}, {"state", state}, {"files", sums}});
    write({std::string(kState), [&](FileWriter& writer) { writer.write(text); }});
    rename_complete(temporary, folder);
  } catch (...) {
    std::error_code ignored;  // the next call with this name removes the remainder
    fs::remove_all(temporary, ignored);
    throw;
  }
}

std::string remove_folder(const fs::path& folder) {
  const fs::path old = temporary_name(folder, "old");
  if (uninterrupted([&] { return ::rename(folder.c_str(), old.c_str()); }) < 0) {
    if (!is_refusal(errno)) throw_io("rename", folder, errno);
    return fmt::format("cannot remove {}: {}", folder.string(),
                       std::system_category().message(errno));
  }
  sync_folder(folder.parent_path());
  return remove_tree_if_allowed(old);
}

fs::path CheckpointFolder::save(std::int64_t step, std::span<const CheckpointFile> files,
                                const nlohmann::json& state, bool is_best,
                                const std::function<void()>& confirm) const {
  fs::path folder = folder_of(step);
  create_folders(folder.parent_path());
  write_files(folder, step, files, state);
  confirm();
  link("last", step);
  if (!is_best) return folder;
  confirm();
  link("best", step);
  return folder;
}

void CheckpointFolder::check_links() const {
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const char* name : {"last", "best"}) {
    if (fs::is_directory(fs::symlink_status(run_ / name, ignored)))
      folders.push_back((run_ / name).string());
  }
  if (folders.empty()) return;
  throw Error(Exit::bad_input,
              "{} {} (as in a copy made without links): remove {} to continue; the "
              "checkpoints remain",
              fmt::join(folders, " and "),
              folders.size() > 1 ? "are folders instead of links to checkpoints"
                                 : "is a folder instead of a link to a checkpoint",
              folders.size() > 1 ? "them" : "it");
}

void CheckpointFolder::link(const std::string& name, std::int64_t step) const {
  check_links();
  replace_symlink(fs::path("checkpoints") / step_name(step), run_ / name);
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> found;
  for (const fs::path& path : entries_of(run_ / "checkpoints")) {
    const auto step = step_in(path.filename().string());
    if (!step) continue;
    std::error_code error;
    if (fs::is_directory(path, error)) {
      found.push_back(*step);
    } else if (error && exit_of_reading(error.value()) == Exit::io) {
      // The checkpoint may be intact, so it must not be ignored.
      throw_io("examine", path, error.value());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::int64_t> CheckpointFolder::linked(const std::string& link) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(run_ / link, error);
  return error ? std::nullopt : step_in(target.filename().string());
}

std::vector<std::string> CheckpointFolder::prune(std::int64_t keep) const {
  keep = std::max(keep, kMinKept);
  const auto best = linked("best"), last = linked("last");
  std::vector<std::int64_t> all = steps();
  std::reverse(all.begin(), all.end());  // the newest first
  std::int64_t counted = 0;
  std::vector<std::string> reasons = remove_unfinished();
  for (const std::int64_t step : all) {
    if (counted < keep) {
      counted += counts(folder_of(step));
    } else if (step != best && step != last) {
      if (std::string why = remove_folder(folder_of(step)); !why.empty())
        reasons.push_back(std::move(why));
    }
  }
  return reasons;
}

std::vector<std::string> CheckpointFolder::remove_unfinished() const {
  std::vector<std::string> reasons;
  for (const fs::path& path : entries_of(run_ / "checkpoints")) {
    if (!path.filename().string().starts_with(fmt::format(".{}", kPrefix))) continue;
    if (std::string why = remove_tree_if_allowed(path); !why.empty())
      reasons.push_back(std::move(why));
  }
  return reasons;
}

void CheckpointFolder::refuse_loss(const Newest& newest) const {
  if (!newest.unreadable.empty()) {
    const std::string older = newest.checkpoint
                                  ? fmt::format("continue from step {}", newest.checkpoint->step)
                              : newest.skipped.empty() ? "begin at step 0"
                                                       : "start over: all others are damaged";
    throw Error(Exit::io,
                "unreadable checkpoints: {}; resume when they are readable, or remove them to {}",
                fmt::join(newest.unreadable, "; "), older);
  }
  if (newest.checkpoint) return;
  if (!newest.skipped.empty())
    throw Error(Exit::bad_input,
                "{}: every checkpoint is damaged, so the run cannot be continued; "
                "heed train with --overwrite starts over",
                run_.string());
  for (const fs::path& path : entries_of(run_ / "checkpoints")) {
    if (path.filename().string().starts_with(fmt::format(".{}", kPrefix)) &&
        path.extension() == ".old" && path_exists(path / kState))
      throw Error(Exit::bad_input,
                  "no checkpoint exists except {}, which was about to be replaced or "
                  "removed and may be intact: rename it to step-…, or remove it",
                  path.string());
  }
  std::error_code ignored;
  // `last` is created with the first checkpoint.
  if (fs::exists(fs::symlink_status(run_ / "last", ignored)))
    throw Error(Exit::bad_input,
                "{} exists, but there is no checkpoint: was {} moved or its disk unmounted? "
                "heed train with --overwrite starts over",
                (run_ / "last").string(), (run_ / "checkpoints").string());
}

CheckpointFolder::Newest CheckpointFolder::newest_valid() const {
  Newest result;
  std::vector<std::int64_t> all = steps();
  std::reverse(all.begin(), all.end());  // the newest first
  for (const std::int64_t step : all) {
    try {
      result.checkpoint = open_checkpoint(folder_of(step));
      return result;
    } catch (const Error& error) {
      (error.code == Exit::io ? result.unreadable : result.skipped).emplace_back(error.what());
    }
  }
  return result;
}

WeightsInfo::WeightsInfo(const std::filesystem::path& f) : folder(f), name(weights_name(f)) {}

WeightsInfo::WeightsInfo(const std::filesystem::path& f, const Checkpoint& checkpoint)
    : WeightsInfo(f) {
  steps = checkpoint.state.value("mean_of_steps", std::vector<std::int64_t>{checkpoint.step});
}

std::string WeightsInfo::text() const {
  const std::string origin = steps.size() > 1
                                 ? fmt::format("mean of steps {}", fmt::join(steps, ", "))
                                 : fmt::format("step {}", fmt::join(steps, ""));
  if (steps.empty()) return folder.string();
  if (name == "step" || name == "folder") return fmt::format("{} ({})", origin, folder.string());
  return fmt::format("{}, {} ({})", name, origin, folder.string());
}

nlohmann::json WeightsInfo::json() const {
  std::error_code ignored;
  return {{"weights", std::filesystem::weakly_canonical(folder, ignored).string()},
          {"weights_name", name},
          {"weights_steps", steps}};
}

}  // namespace heed
