#pragma once
/// Other programs, started without a shell.
#include <string>
#include <vector>

namespace heed {

struct ProgramResult {
  int status = 0;      ///< exit status; 128 + signal when it was killed
  std::string errors;  ///< what it wrote to stderr (the first 64 KiB)
};

/// Runs a program found in PATH and waits for it. Its stdin is empty and its stdout is dropped.
/// Throws Error(failed) when there is no such program.
ProgramResult run_program(const std::vector<std::string>& arguments);

}  // namespace heed
