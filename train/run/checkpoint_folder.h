#pragma once
/// The checkpoints of a run, as folders and files, regardless of the files' contents.
///
///   RUN/checkpoints/step-00001000/{…, state.json}
///   RUN/last -> checkpoints/step-00001000        RUN/best -> checkpoints/step-00000500
///
/// Writing one: all files are written to a hidden sibling folder and flushed to disk; then
/// state.json, which holds the SHA-256 of every file and of itself; then the folder is renamed and
/// its parent flushed. Only then are the links updated, and after that older checkpoints removed.
/// So whenever the process is killed or the power fails, every folder with a step's name is intact,
/// or its sums show that it is not.
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
  std::string name;  ///< plain file name; not state.json
  std::function<void(FileWriter&)> write;
};

/// A checkpoint whose sums are verified.
struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
  nlohmann::json state;  ///< as given to save()
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path run) : run_(std::move(run)) {}

  /// Writes a checkpoint, replacing one of the same step, and points `last` at it (and `best`, if
  /// requested). The caller holds the RunLock. Throws Error(io), leaving all earlier ones
  /// unchanged.
  std::filesystem::path save(std::int64_t step, std::span<const CheckpointFile> files,
                             const nlohmann::json& state, bool is_best = false) const;

  /// Throws Error(bad_input) if "last" or "best" is a folder instead of a link.
  void check_links() const;
  /// Points the link "best" or "last" at a checkpoint. Throws as check_links() does.
  void link(const std::string& name, std::int64_t step) const;

  /// Removes the oldest, but never the `keep` newest (at least two), nor those that `best` and
  /// `last` point at; also removes what a killed process left unfinished. Checkpoints that are
  /// visibly damaged or whose state has "on_request" do not count towards `keep`: a mean needs that
  /// many regular ones. Returns why something could not be removed, if it belongs to another user
  /// or is in use.
  std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes what a killed process left half written or half removed. Returns why something could
  /// not be removed, if it belongs to another user or is in use.
  std::vector<std::string> remove_unfinished() const;

  /// The steps that have a folder, ascending, damaged ones included.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path folder_of(std::int64_t step) const;
  /// The step that the link "best" or "last" points at.
  std::optional<std::int64_t> linked(const std::string& link) const;

  struct Newest {
    std::optional<Checkpoint> checkpoint;  ///< none: nothing to continue from
    std::vector<std::string> skipped;      ///< newer ones that are damaged, with the reason
    std::vector<std::string> unreadable;   ///< newer ones that the system refuses to read
  };
  /// The newest whose sums are correct.
  Newest newest_valid() const;
  /// Throws if continuing from the newest valid one, or starting at step 0, could lose saved work:
  /// Error(io) if another cannot be read, Error(bad_input) if all are damaged or none is left.
  void refuse_loss(const Newest& newest) const;

 private:
  std::filesystem::path run_;
};

/// Writes a folder of files with their sums atomically, replacing one of that name: the files are
/// collected in the hidden sibling `.NAME.tmp`, which is then renamed. If writing fails, it is
/// removed; a killed process leaves it, and the next one of that name removes it.
void write_files(const std::filesystem::path& folder, std::int64_t step,
                 std::span<const CheckpointFile> files, const nlohmann::json& state);
/// Removes a folder; under its name it is never seen half removed. Returns "", or the reason if the
/// system refuses.
std::string remove_folder(const std::filesystem::path& folder);
/// Checks the sum of one file of such a folder. Returns the checkpoint that state.json describes;
/// throws as below.
Checkpoint check_file(const std::filesystem::path& folder, const std::string& name);
/// Checks every sum of a checkpoint (or of a link to one). Throws Error(bad_input), naming the file
/// that is missing, of another length, or changed; Error(io) if the system refuses to read it.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

/// Which weights a folder holds: every command that reads weights reports them.
struct WeightsInfo {
  std::filesystem::path folder;  ///< as it was found: RUN/best
  std::string name;              ///< best, last, average, step, or folder
  std::vector<std::int64_t>
      steps;  ///< the weights are of this step, or the mean of these; may be unknown

  WeightsInfo() = default;
  /// Weights without a checkpoint's record.
  explicit WeightsInfo(const std::filesystem::path& folder);
  /// The weights of a checkpoint, or of a mean of checkpoints.
  WeightsInfo(const std::filesystem::path& folder, const Checkpoint& checkpoint);

  std::string text() const;  ///< "best, step 2000 (runs/dates/best)"
  /// {"weights": "/…/checkpoints/step-00002000", "weights_name": "best", "weights_steps": [2000]}
  nlohmann::json json() const;
};

}  // namespace heed
