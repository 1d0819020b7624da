#pragma once
/// Runs programs without a shell.
#include <functional>
#include <string>
#include <vector>

namespace heed {

struct ProgramResult {
  int status = 0;    ///< exit status; 128 + signal if the program was killed
  int signal = 0;    ///< signal that killed the program; 0: it exited
  std::string text;  ///< output on the captured stream; at least its last 64 KiB

  std::string last_line() const;
};

/// Runs a program found in PATH and waits for it. Its stdin is empty. `keep` selects the stream to
/// capture, stdout (1) or stderr (2); the other is discarded. Throws Error(failed) if the program
/// cannot be run, Error(io) if no pipe can be created. If `started` is set, it receives the process
/// id, and the program runs in a separate process group, which signals from the terminal reach only
/// if the caller forwards them.
ProgramResult run_program(const std::vector<std::string>& arguments, int keep,
                          const std::function<void(int)>& started = {});

}  // namespace heed
