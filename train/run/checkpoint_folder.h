#pragma once
/// The checkpoints of a run as folders of files. CheckpointFolder does not interpret the files.
///
///   RUN/checkpoints/step-00001000/{…, state.json}
///   RUN/last -> checkpoints/step-00001000        RUN/best -> checkpoints/step-00000500
///
/// A checkpoint is written in this order: all files go to a hidden sibling folder and are flushed
/// to disk; then state.json, which contains the SHA-256 of every file and of itself; then the
/// folder is renamed and its parent flushed; then the links are updated; then older checkpoints are
/// removed. At whatever moment the process is killed or the power fails, every folder named after a
/// step is intact, or its SHA-256 checksums show that it is damaged.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/base/files.h"

namespace heed {

/// A file of a checkpoint to be written.
struct CheckpointFile {
  std::string name;  ///< plain file name other than state.json
  std::function<void(FileWriter&)> write;
};

/// A checkpoint with verified checksums.
struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
  nlohmann::json state;  ///< the argument of save()
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path run) : run_(std::move(run)) {}

  /// Writes a checkpoint, replacing one of the same step, and points `last` at it (and `best` if
  /// `is_best`). The caller holds the RunLock. Throws Error(io); earlier checkpoints are then
  /// unchanged.
  std::filesystem::path save(std::int64_t step, std::span<const CheckpointFile> files,
                             const nlohmann::json& state, bool is_best = false) const;

  /// Throws Error(bad_input) if "last" or "best" is a folder instead of a link.
  void check_links() const;
  /// Points the link "best" or "last" at a checkpoint. Throws the errors of check_links().
  void link(const std::string& name, std::int64_t step) const;

  /// Removes all checkpoints except the `keep` newest (minimum two) and those that `best` and
  /// `last` point at, and calls remove_unfinished(). Checkpoints that are visibly damaged or whose
  /// state has "on_request" do not count towards `keep`, because averaging requires `keep` regular
  /// checkpoints. Returns the reasons why folders could not be removed: another user owns them, or
  /// they are in use.
  std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes the folders that a killed process wrote or removed only in part. Returns the reasons
  /// why folders could not be removed: another user owns them, or they are in use.
  std::vector<std::string> remove_unfinished() const;

  /// The steps that have a checkpoint, ascending, including damaged checkpoints.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path folder_of(std::int64_t step) const;
  /// The step that the link "best" or "last" points at.
  std::optional<std::int64_t> linked(const std::string& link) const;

  struct Newest {
    std::optional<Checkpoint> checkpoint;  ///< nullopt: nothing to continue from
    std::vector<std::string> skipped;      ///< descriptions of newer checkpoints' damage
    std::vector<std::string>
        unreadable;  ///< errors of newer checkpoints that the system cannot read
  };
  /// The newest checkpoint with correct checksums.
  Newest newest_valid() const;
  /// Throws if continuing from the newest valid checkpoint, or starting at step 0, could lose saved
  /// work: Error(io) if a newer one cannot be read, Error(bad_input) if all are damaged or missing.
  void refuse_loss(const Newest& newest) const;

 private:
  std::filesystem::path run_;
};

/// Atomically writes a folder of files with their checksums, replacing any folder of the same name:
/// the files are written to the hidden sibling `.NAME.tmp`, which is then renamed. If writing
/// fails, the sibling is removed. A killed process leaves it behind; the next call with the same
/// name removes it.
void write_files(const std::filesystem::path& folder, std::int64_t step,
                 std::span<const CheckpointFile> files, const nlohmann::json& state);
/// Removes a folder after renaming it, so that no folder of that name is ever incomplete. Returns
/// "", or the reason if the system refuses.
std::string remove_folder(const std::filesystem::path& folder);
/// Verifies the checksum of one file of a folder that write_files has written. Returns the
/// checkpoint that state.json describes; throws the errors of open_checkpoint.
Checkpoint check_file(const std::filesystem::path& folder, const std::string& name);
/// Verifies all checksums of a checkpoint (or of the one that a link points at). Throws
/// Error(bad_input), naming the file, if one is missing or changed or has another size; Error(io)
/// if the system refuses to read it.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

/// The origin of a folder's weights, which every command that reads weights reports.
struct WeightsInfo {
  std::filesystem::path folder;     ///< path as found: RUN/best
  std::string name;                 ///< best, last, average, step, or folder
  std::vector<std::int64_t> steps;  ///< step of the weights, or averaged steps; empty: unknown

  WeightsInfo() = default;
  /// Weights without a state.json.
  explicit WeightsInfo(const std::filesystem::path& folder);
  /// The weights of a checkpoint, or of a mean of checkpoints.
  WeightsInfo(const std::filesystem::path& folder, const Checkpoint& checkpoint);

  std::string text() const;  ///< "best, step 2000 (runs/dates/best)"
  /// {"weights": "/…/checkpoints/step-00002000", "weights_name": "best", "weights_steps": [2000]}
  nlohmann::json json() const;
};

}  // namespace heed
