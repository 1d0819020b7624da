#pragma once
/// Other programs, started without a shell.
#include <string>
#include <vector>

namespace heed {

struct ProgramResult {
  int status = 0;    ///< exit status; 128 + signal when it was killed
  std::string text;  ///< what it wrote to the stream that is kept (the first 64 KiB)
};

/// Runs a program found in PATH and waits for it. Its stdin is empty; `keep` is its standard output
/// (1) or error (2), and the other is dropped. Throws Error(failed) when there is no such program.
ProgramResult run_program(const std::vector<std::string>& arguments, int keep);

}  // namespace heed
