#pragma once
/// The only exception type: a message for the user, and the program's exit status.
#include <stdexcept>
#include <string>

namespace heed {

enum class Exit {
  failed = 1,      ///< any other failure
  usage = 2,       ///< command line or config
  bad_input = 3,   ///< a data, model or checkpoint file is broken or missing
  io = 4,          ///< disk, memory, I/O
  non_finite = 5,  ///< loss or gradients are NaN or infinite
  locked = 6,      ///< another process has locked the run folder
};

struct Error : std::runtime_error {
  Error(Exit exit_code, const std::string& message)
      : std::runtime_error(message), code(exit_code) {}
  Exit code;
};

}  // namespace heed
