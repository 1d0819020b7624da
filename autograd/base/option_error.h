#pragma once
/// Errors in options that a part of the program reports about the options that it owns, for the
/// checks of a config.
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct OptionError {
  /// Keys of the config: first the key whose value is wrong, then those that it contradicts.
  std::vector<std::string_view> keys;
  std::string message;
};
using OptionErrors = std::vector<OptionError>;

}  // namespace heed
