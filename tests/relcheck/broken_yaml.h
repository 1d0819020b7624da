#pragma once
/// Builds the lists of broken configs.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {

/// A complete minimal config, the first line of most cases.
inline const std::string kRuns = "data: {synthetic: {name: copy}}\n";

struct YamlCases {
  std::vector<BrokenCase> all;

  /// Adds a config. `says` begins with a position ("2:7: seed: …"); if it is empty, any position is
  /// accepted.
  void text(const std::string& name, const std::string& text, const std::string& says);
  /// Adds a config that begins with a valid first line.
  void after(const std::string& name, const std::string& lines, const std::string& says) {
    text(name, kRuns + lines, says);
  }
  /// Adds a config at the maximum size and at an eighth of it, to measure how the running time
  /// grows with the size.
  void sized(const std::string& name, const std::function<std::string(std::size_t bytes)>& of_size,
             const std::string& says);
  /// Adds a path that is not an ordinary config file; `says` is the message without the path.
  void other(const std::string& name, std::function<void(const std::filesystem::path&)> make,
             const std::string& says);
};

}  // namespace heed::relcheck
