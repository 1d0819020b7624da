/// A folder of checkpoints, read as `resume` reads it. The input is a list of files and links:
///   ==== checkpoints/step-00000010/model.safetensors
///   (the file's bytes, without the last newline)
///   ==== checkpoints/step-00000010/state.json sealed
///   {"step": 10, "state": {}, "files": {"model.safetensors": {}}}
///   ==== last -> checkpoints/step-00000010
/// "sealed" adds what mutation would never find: the sizes and SHA-256 checksums of the files, then
/// the checksum of state.json itself, which is written in its canonical form.
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/fuzz/target.h"
#include "train/loop/trainer.h"
#include "train/run/checkpoint_folder.h"

namespace heed::fuzz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view mark = "==== ";
constexpr int max_files = 12;

/// Whether a name is a relative path inside the scratch folder, of acceptable length.
bool is_safe(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '/') return false;
  for (Bytes parts(name); !parts.empty();) {
    const std::string_view part = parts.until("/");
    if (part.empty() || part == "." || part == "..") return false;
  }
  return name.find('\0') == std::string_view::npos;
}

std::string text_of(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

/// state.json with missing sizes and checksums filled in, or the text itself if it is not a JSON
/// object.
std::string sealed(std::string_view text, const fs::path& folder) {
  json state = json::parse(text, nullptr, false);
  if (!state.is_object()) return std::string(text);
  if (state.contains("files") && state["files"].is_object()) {
    for (auto& [name, about] : state["files"].items()) {
      std::error_code error;
      if (!about.is_object() || !is_safe(name) || !fs::is_regular_file(folder / name, error))
        continue;
      const std::string bytes = get(folder / name);
      if (!about.contains("bytes")) about["bytes"] = bytes.size();
      if (!about.contains("sha256")) about["sha256"] = sha256_hex(bytes);
    }
  }
  state.erase("sha256");
  state["sha256"] = sha256_hex(text_of(state));
  return text_of(state);
}

void make_entry(const fs::path& run, std::string_view line, std::string_view content) {
  Bytes words(line);
  const std::string_view name = words.until(" ");
  if (!is_safe(name)) return;
  std::error_code ignored;
  const fs::path path = run / name;
  fs::create_directories(path.parent_path(), ignored);
  if (words.rest().starts_with("-> ")) {
    words.until(" ");
    if (is_safe(words.rest())) fs::create_symlink(words.rest(), path, ignored);
  } else if (name.ends_with('/')) {
    fs::create_directories(path, ignored);
  } else if (fs::is_directory(path.parent_path(), ignored) &&
             !fs::exists(fs::symlink_status(path, ignored))) {
    const bool seal = words.rest() == "sealed";
    put(path, seal ? sealed(content, path.parent_path()) : std::string(content));
  }
}

void make_run(const fs::path& run, std::string_view input) {
  fs::remove_all(run);
  fs::create_directories(run);
  Bytes bytes(input);
  bytes.until(mark);
  for (int i = 0; i < max_files && !bytes.empty(); ++i) {
    const std::string_view line = bytes.until("\n");
    make_entry(run, line, bytes.until("\n==== "));
  }
}

/// Checks the step, and the sizes and checksums of the files, against the checkpoint's state.json.
void require_whole(const Checkpoint& checkpoint) {
  const json state = json::parse(get(checkpoint.folder / "state.json"));
  require(state.at("step") == checkpoint.step, "the step is that of state.json");
  for (const auto& [name, about] : state.at("files").items()) {
    const std::string bytes = get(checkpoint.folder / name);
    require(about.at("bytes") == bytes.size(), name + " has the size in state.json");
    require(about.at("sha256") == sha256_hex(bytes), name + " has the checksum in state.json");
  }
}

}  // namespace

void target(std::string_view input) {
  const fs::path run = scratch() / "run";
  make_run(run, input);
  const CheckpointFolder folder(run);
  const CheckpointFolder::Newest newest = folder.newest_valid();
  for (const std::string& why : newest.skipped)
    require(why.find(run.string()) != std::string::npos,
            "the message names a path in the run: " + why);
  folder.linked("best");
  try {
    require_whole(open_checkpoint(run / "last"));
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, "");
  }
  if (!newest.checkpoint) throw Error(Exit::bad_input, "no checkpoint to continue from");
  require_whole(*newest.checkpoint);
  if (newest.skipped.empty()) {  // all checkpoints are valid, as after a save
    must_work([&] {
      folder.prune(2);
      const CheckpointFolder::Newest left = folder.newest_valid();
      require(left.checkpoint && left.checkpoint->step == newest.checkpoint->step,
              "pruning keeps the newest checkpoint");
    });
  }
  Progress::from(newest.checkpoint->state);  // `resume` does this too
}

}  // namespace heed::fuzz
