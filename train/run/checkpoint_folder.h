#pragma once
/// The checkpoints of a run, as folders and files; what is in the files is not known here.
///
///   RUN/checkpoints/step-00001000/{…, state.json}
///   RUN/last -> checkpoints/step-00001000        RUN/best -> checkpoints/step-00000500
///
/// Writing one: all files go into a hidden folder next to its place, each pushed to the disk; then
/// state.json, which holds the SHA-256 of every file and of itself; then one rename and the parent
/// folder pushed to the disk. Only then the links move, and only after that older ones are removed.
/// So whenever the process is killed or the power fails, every folder with a step's name is whole, or
/// its sums show that it is not.
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

/// A file to go into a checkpoint.
struct CheckpointFile {
  std::string name;  ///< plain file name; not state.json
  std::function<void(FileWriter&)> write;
};

/// A checkpoint whose sums were found right.
struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
  nlohmann::json state;  ///< as given to save()
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path run) : run_(std::move(run)) {}

  /// Writes a checkpoint, replacing one of the same step, and points `last` at it (and `best`, if
  /// asked). The caller holds the RunLock. Throws Error(io); then all earlier ones are as they
  /// were.
  std::filesystem::path save(std::int64_t step, std::span<const CheckpointFile> files,
                             const nlohmann::json& state, bool is_best = false) const;

  /// Throws Error(bad_input) where "last" or "best" is a folder of its own.
  void check_links() const;
  /// Points the link "best" or "last" at a checkpoint. Throws as check_links() does.
  void link(const std::string& name, std::int64_t step) const;

  /// Removes the oldest, but never the `keep` newest (nor the two newest, whatever `keep` says),
  /// nor those that `best` and `last` point at; also removes what a killed process left unfinished.
  /// A checkpoint that is visibly damaged counts for nothing, and so does one whose state has
  /// "on_request": a mean needs as many that were due. Returns why something stays, where it is another
  /// user's or in use.
  std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes what a killed process has left half written or half removed. Returns why something
  /// stays, where it is another user's or in use.
  std::vector<std::string> remove_unfinished() const;

  /// The steps that have a folder, ascending, damaged ones included.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path folder_of(std::int64_t step) const;
  /// The step that the link "best" or "last" points at.
  std::optional<std::int64_t> linked(const std::string& link) const;

  struct Newest {
    std::optional<Checkpoint> checkpoint;  ///< none: nothing is there to go on from
    std::vector<std::string> skipped;      ///< newer ones that are damaged, and how
    std::vector<std::string> unreadable;   ///< newer ones that the system does not let us read
  };
  /// The newest whose sums are right.
  Newest newest_valid() const;
  /// Throws where to go on from the newest valid one, or to begin at step 0, could cost what was
  /// saved: Error(io) where another cannot be read, Error(bad_input) where all are damaged, or there
  /// is none any more.
  void refuse_loss(const Newest& newest) const;

 private:
  std::filesystem::path run_;
};

/// Writes a folder of files with their sums, whole or not at all, replacing one of that name.
void write_files(const std::filesystem::path& folder, std::int64_t step,
                 std::span<const CheckpointFile> files, const nlohmann::json& state);
/// Checks the sum of one file of such a folder. Returns what state.json says, and throws as below.
Checkpoint check_file(const std::filesystem::path& folder, const std::string& name);
/// Checks every sum of a checkpoint (or of a link to one). Throws Error(bad_input), naming the file
/// that is missing, of another length, or changed; Error(io) where the system does not let us look.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

}  // namespace heed
