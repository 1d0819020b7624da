#pragma once
/// What a training run says to people: on stderr, and in the run's train.log.
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
  /// From now on lines go into this file as well (appended). A line that cannot be written there
  /// throws Error(io).
  void log_to(const std::filesystem::path& file);

  void line(const std::string& text);
  /// Into the file alone: what will be said elsewhere.
  void log(const std::string& text);
  void progress(const TrainingState& state);
  void end_progress() { bar_->finish(); }

 private:
  std::unique_ptr<ProgressBar> bar_;
  FileDescriptor log_;
  std::filesystem::path log_path_;
};

/// A line on standard error, of a command that keeps no log. Where it cannot be written there is no
/// place left to say so, and the status is what it would have been.
void tell(std::string_view line);
/// The same of the program itself: "heed: ...".
void tell_note(std::string_view line);

}  // namespace heed
