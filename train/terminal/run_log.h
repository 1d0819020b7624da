#pragma once
/// Prints the messages of a training run on stderr and logs them in the run's train.log.
#include <filesystem>
#include <string>

#include "autograd/base/files.h"
#include "train/terminal/progress.h"

namespace heed {

/// Suppresses all messages of this process except errors. In a distributed run, all ranks except
/// rank 0 call it.
void silence();

class RunLog {
 public:
  /// Makes line() and log() append to this file. Throws Error(io) if it cannot be opened.
  void log_to(const std::filesystem::path& file);

  /// Prints and logs a line.
  void line(const std::string& text);
  /// Writes a line only to the file, for text that other code prints. Without a call of log_to(),
  /// does nothing.
  void log(const std::string& text);
  void progress(const ProgressState& state);
  /// Adds a loss to the sparkline of the progress bar.
  void add_to_curve(double loss) { bar_.add_to_curve(loss); }
  void end_progress() { bar_.finish(); }

 private:
  ProgressBar bar_{"train"};
  FileDescriptor log_;
  std::filesystem::path log_path_;
};

/// Prints a line on stderr, for a command without a log. A failed write is ignored: it cannot be
/// reported and does not change the exit status.
void print_message(std::string_view line);
/// Prints a line with the prefix "heed: " on stderr.
void print_note(std::string_view line);
/// Prints an error with the prefix "heed: " on stderr, even after silence().
void print_error(std::string_view line);

// ---- former names, for one release ---------------------------------------------------------

using Talk [[deprecated("use RunLog")]] = RunLog;
[[deprecated("use print_message")]] inline void tell(std::string_view line) { print_message(line); }
[[deprecated("use print_note")]] inline void tell_note(std::string_view line) { print_note(line); }
[[deprecated("use print_error")]] inline void tell_error(std::string_view line) {
  print_error(line);
}

}  // namespace heed
