#pragma once
/// What completion and the man page say about an option, a flag or a positional argument.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace heed {

/// {"-h", "--help"}; none for a positional argument.
inline std::vector<std::string> names_of(const CLI::Option& option) {
  if (option.get_positional()) return {};
  return CLI::detail::split(option.get_name(false, true), ',');
}

/// The name of the value in the help, such as FOLDER; empty for a flag.
inline std::string value_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();  // FOLDER, or NAME:{valid,test}
  return type.substr(0, type.find(':'));
}

inline bool repeats(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

}  // namespace heed
