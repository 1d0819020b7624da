#pragma once
/// The checkpoints of a run as folders of files, of which CheckpointFolder interprets only
/// state.json.
///
///   RUN/checkpoints/step-00001000/{…, state.json}
///   RUN/last -> checkpoints/step-00001000        RUN/best -> checkpoints/step-00000500
///
/// A checkpoint is written in these steps:
///   1. All files are written to a hidden sibling folder and flushed to disk. The last of them is
///      state.json, with the SHA-256 of every other file and of its own content.
///   2. The folder is renamed, and its parent flushed to disk.
///   3. The links are updated.
///   4. Older checkpoints are removed (prune).
/// At whatever moment the process is killed or the power fails, every folder named after a step is
/// intact, or its checksums show that it is damaged.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/io/files.h"

namespace heed {

/// A file to be written into a checkpoint.
struct CheckpointFile {
  std::string name;  ///< plain file name other than state.json
  std::function<void(FileWriter&)> write;
};

/// A checkpoint whose checksums open_checkpoint has verified, or check_file for one of its files.
struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
  nlohmann::json state;  ///< the argument of save()
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path run) : run_(std::move(run)) {}

  /// Writes a checkpoint, replacing one of the same step, and points `last` at it (and `best` if
  /// `is_best`). Returns its folder. The caller must hold the RunLock. Throws Error(io) if writing
  /// fails, with the earlier checkpoints unchanged, and the errors of link(). Calls `confirm` before each
  /// link: another run may have replaced the folder while the checkpoint was written.
  std::filesystem::path save(
      std::int64_t step, std::span<const CheckpointFile> files, const nlohmann::json& state,
      bool is_best = false, const std::function<void()>& confirm = [] {}) const;

  /// Throws Error(bad_input) if "last" or "best" is a folder instead of a link.
  void check_links() const;
  /// Points the link "best" or "last" at a checkpoint. Throws the errors of check_links().
  void link(const std::string& name, std::int64_t step) const;

  /// Removes all checkpoints except the `keep` newest (minimum two) and those that `best` and
  /// `last` point at, and calls remove_unfinished(). Checkpoints with a damaged state.json or with
  /// files of the wrong size, and those whose state contains "on_request", do not count towards
  /// `keep`, because averaging requires `keep` regular checkpoints. Returns the reasons why folders
  /// could not be removed: another user owns them, or they are in use.
  std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes the folders that a killed process wrote or removed only in part. Returns the reasons
  /// why folders could not be removed: another user owns them, or they are in use.
  std::vector<std::string> remove_unfinished() const;

  /// The steps that have a checkpoint, ascending, including damaged checkpoints.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path folder_of(std::int64_t step) const;
  /// The step that the link "best" or "last" points at; nullopt if there is no such link.
  std::optional<std::int64_t> linked(const std::string& link) const;

  struct Newest {
    std::optional<Checkpoint> checkpoint;  ///< nullopt: nothing to continue from
    std::vector<std::string> skipped;      ///< damaged newer checkpoints, one message each
    std::vector<std::string>
        unreadable;  ///< newer checkpoints that the system cannot read, one message each
  };
  /// The newest checkpoint with correct checksums.
  Newest newest_valid() const;
  /// Throws if continuing from the newest valid checkpoint, or starting at step 0, could lose saved
  /// work: Error(io) if a newer checkpoint cannot be read; Error(bad_input) if all checkpoints are
  /// damaged, or if none is found although the run has saved one.
  void refuse_loss(const Newest& newest) const;

 private:
  std::filesystem::path run_;
};

/// Writes a folder of files with their checksums, replacing any folder of the same name, atomically
/// if the file system can exchange two names. The files are written to the hidden sibling
/// `.NAME.tmp`, which is then renamed. If writing fails, the sibling is removed. A killed process
/// leaves it behind; the next call with the same name removes it.
void write_files(const std::filesystem::path& folder, std::int64_t step,
                 std::span<const CheckpointFile> files, const nlohmann::json& state);
/// Removes a folder after renaming it, so that no folder of that name is ever incomplete. Returns
/// "" or, if the system refuses, the reason. Throws Error(io) for other failures.
std::string remove_folder(const std::filesystem::path& folder);
/// Verifies the checksum of one file in a folder that write_files has written, whatever the name of
/// the folder. Returns the checkpoint that state.json describes. Throws the errors of
/// open_checkpoint, and Error(bad_input) if state.json does not list the file.
Checkpoint check_file(const std::filesystem::path& folder, const std::string& name);
/// Verifies all checksums of a checkpoint, or of the one that a link points at. Throws
/// Error(bad_input), naming the file, if a file is missing or changed or has another size, or if
/// the folder is not named after its step; Error(io) if the system refuses to read a file.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

/// The origin of a folder's weights, which every command that reads weights reports.
struct WeightsInfo {
  std::filesystem::path folder;  ///< path as found: RUN/best
  std::string name;              ///< best, last, average, step (a checkpoint) or folder (any other)
  std::vector<std::int64_t> steps;  ///< steps of the weights; several: averaged; empty: unknown

  WeightsInfo() = default;
  /// Weights without a state.json.
  explicit WeightsInfo(const std::filesystem::path& folder);
  /// The weights of a checkpoint, or the mean of the weights of several.
  WeightsInfo(const std::filesystem::path& folder, const Checkpoint& checkpoint);

  std::string text() const;  ///< "best, step 2000 (runs/dates/best)"
  /// {"weights": "/…/checkpoints/step-00002000", "weights_name": "best", "weights_steps": [2000]}
  nlohmann::json json() const;
};

}  // namespace heed
