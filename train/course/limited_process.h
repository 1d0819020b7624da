#pragma once
/// Runs a program that may be hostile or broken, with limits on its time and memory.
#include <cstdint>
#include <string>
#include <vector>

namespace heed::course {

struct ProcessLimits {
  double seconds = 60;            ///< time on the clock
  double processor_seconds = 60;  ///< rounded up to whole seconds
  std::uint64_t bytes = 0;        ///< address space; 0: no limit
};

struct LimitedResult {
  int status = 0;                ///< exit status, if no signal ended the program
  int signal = 0;                ///< signal that ended the program; 0: it exited
  bool out_of_time = false;      ///< one of the two limits on time was reached
  double seconds = 0;            ///< on the clock
  double processor_seconds = 0;  ///< of the program and the children that it waited for
  std::string errors;            ///< the beginning of its standard output and error, 1 MB
  std::string report;            ///< what it wrote to descriptor `report_descriptor`
};

/// The descriptor on which the program may report to the caller.
inline constexpr int report_descriptor = 3;

/// Runs the program, found in PATH, with `input` as its standard input, and waits for it. Matrix
/// products of the program use one thread. When it has ended, all processes of its group are
/// killed; a process that leaves the group is not found. Throws Error(failed) if the program cannot
/// be started, Error(io) if the system refuses pipes.
LimitedResult run_limited(const std::vector<std::string>& arguments, const std::string& input,
                          const ProcessLimits& limits);

}  // namespace heed::course
