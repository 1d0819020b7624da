#pragma once
/// Other programs, started without a shell.
#include <functional>
#include <string>
#include <vector>

namespace heed {

struct ProgramResult {
  int status = 0;    ///< exit status; 128 + signal if it was killed
  int signal = 0;    ///< that killed it; 0: it exited
  std::string text;  ///< its output on the captured stream (the last 64 KiB or more)
};

/// Runs a program found in PATH and waits for it. Its stdin is empty; `keep` selects the stream to
/// capture, standard output (1) or error (2); the other is discarded. Throws Error(failed) if there
/// is no such program. With `started`, which receives its process number, the program is in a process
/// group of its own: a signal from the terminal reaches it only if the caller sends it on.
ProgramResult run_program(const std::vector<std::string>& arguments, int keep,
                          const std::function<void(int)>& started = {});

}  // namespace heed
