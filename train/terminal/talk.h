#pragma once
/// The messages of a training run, on stderr and in the run's train.log.
#include <filesystem>
#include <memory>
#include <string>

#include "autograd/base/files.h"
#include "train/terminal/progress.h"

namespace heed {

struct TrainingState {
  std::int64_t step, total_steps;  ///< total 0: not limited by steps
  double share_done;               ///< of the run, 0 to 1
  double seconds;                  ///< of training so far
  double epochs;
  double loss, learning_rate, tokens_per_second;
};

class Talk {
 public:
  Talk() : bar_(std::make_unique<ProgressBar>("train")) {}
  /// From now on, also appends each line to this file. Throws Error(io) if that fails.
  void log_to(const std::filesystem::path& file);

  void line(const std::string& text);
  /// Writes only to the file, for text that is printed elsewhere.
  void log(const std::string& text);
  void progress(const TrainingState& state);
  void end_progress() { bar_->finish(); }

 private:
  std::unique_ptr<ProgressBar> bar_;
  FileDescriptor log_;
  std::filesystem::path log_path_;
};

/// Writes a line to standard error, for a command without a log. A failure to write it is ignored: it
/// could not be reported, and does not change the exit status.
void tell(std::string_view line);
/// The same, prefixed with "heed: ".
void tell_note(std::string_view line);

}  // namespace heed
