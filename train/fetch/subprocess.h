#pragma once
/// Runs programs without a shell.
#include <functional>
#include <string>
#include <vector>

namespace heed {

struct ProgramResult {
  int status = 0;    ///< exit status; 128 + signal if the program was killed
  int signal = 0;    ///< signal that killed the program; 0: it exited
  std::string text;  ///< output on the captured stream (the last 64 KiB or more)
};

/// Runs a program found in PATH and waits for it. Its stdin is empty; `keep` selects the stream to
/// capture, stdout (1) or stderr (2); the other of the two is discarded. Throws Error(failed) if
/// there is no such program. `started` receives the process id; with it, the program has a separate
/// process group, so a signal from the terminal reaches it only if the caller forwards it.
ProgramResult run_program(const std::vector<std::string>& arguments, int keep,
                          const std::function<void(int)>& started = {});

}  // namespace heed
