#pragma once
/// The exception that heed throws for errors: a message for the user and the program's exit status.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

enum class Exit {
  failed = 1,      ///< any failure not listed below
  usage = 2,       ///< the command line or the config is wrong
  bad_input = 3,   ///< a data, model or checkpoint file is broken or missing
  io = 4,          ///< disk or other I/O failed, or memory is exhausted
  non_finite = 5,  ///< loss or gradients are NaN or infinite
  locked = 6,      ///< another process has locked the run folder
};

struct Error : std::runtime_error {
  Error(Exit exit_code, const std::string& message)
      : std::runtime_error(message), code(exit_code) {}
  /// The message is formatted as by fmt::format.
  template <class First, class... Rest>
  Error(Exit exit_code, fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest)
      : Error(exit_code,
              fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  Exit code;
};

}  // namespace heed
