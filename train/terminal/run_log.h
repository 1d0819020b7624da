#pragma once
/// Messages on stderr, and text on stdout. Messages of a training run are also logged in its
/// train.log. Names and texts may come from files of others, so everything is escaped for the
/// terminal (for_terminal).
#include <filesystem>
#include <string>

#include "autograd/io/files.h"
#include "train/terminal/progress.h"

namespace heed {

/// Suppresses all messages of this process to stderr except errors. In a distributed run, all ranks
/// except rank 0 call it.
void silence();

/// Text may come from received files: each message is one line, with its control characters escaped.
class RunLog {
 public:
  /// Makes line() and log() append to this file. Throws the errors of open_regular.
  void log_to(const std::filesystem::path& file);

  /// Prints a line and logs it as log() does.
  void line(const std::string& text);
  /// Appends a line with the date and time to the file without printing it, for text that is printed
  /// elsewhere. Does nothing before log_to() is called. Throws Error(io) if the write fails.
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

/// Prints a line to stderr without logging it. A failed write is ignored: it cannot be reported and
/// does not change the exit status.
void print_message(std::string_view line);
/// Prints a line with the prefix "heed: " to stderr.
void print_note(std::string_view line);
/// Prints text to stdout. Throws std::system_error if the write fails.
void print_text(std::string_view text);
/// Prints an error with the prefix "heed: " to stderr, even after silence().
void print_error(std::string_view line);

// ---- former names, for one release ---------------------------------------------------------

using Talk [[deprecated("use RunLog")]] = RunLog;
[[deprecated("use print_message")]] inline void tell(std::string_view line) { print_message(line); }
[[deprecated("use print_note")]] inline void tell_note(std::string_view line) { print_note(line); }
[[deprecated("use print_error")]] inline void tell_error(std::string_view line) {
  print_error(line);
}

}  // namespace heed
