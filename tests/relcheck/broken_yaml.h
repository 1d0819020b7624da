#pragma once
/// How the broken configs are listed.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {

/// What makes a config that runs, as the first line of most cases.
inline const std::string kRuns = "data: {synthetic: {name: copy}}\n";

struct YamlCases {
  std::vector<BrokenCase> all;

  /// A config; `says` begins with its place: "2:7: seed: …".
  void text(const std::string& name, const std::string& text, const std::string& says);
  /// The same after a first line that is right.
  void after(const std::string& name, const std::string& lines, const std::string& says) {
    text(name, kRuns + lines, says);
  }
  /// The same of the size that may be and of an eighth of it, so that the growth of time is seen.
  void sized(const std::string& name, const std::function<std::string(std::size_t bytes)>& of_size,
             const std::string& says);
  /// Something else than a file with a text; `says` is all but the path.
  void other(const std::string& name, std::function<void(const std::filesystem::path&)> make,
             const std::string& says);
};

}  // namespace heed::relcheck
