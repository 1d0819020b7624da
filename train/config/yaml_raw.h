#pragma once
/// What can be said of a config's text before it is parsed.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct TextFlaw {
  int line;    ///< from 1
  int column;  ///< from 1, in characters
  std::string message;
};

/// The first byte that no config may hold: broken UTF-8, or a control character other
/// than tab and line end.
std::optional<TextFlaw> find_flaw(std::string_view text);

/// Columns in characters for places given in bytes, which is how yaml-cpp counts.
class Columns {
 public:
  explicit Columns(std::string_view text);

  /// Column, from 1, of the byte at `offset`, which is byte `column` (from 0) of its line.
  int at(std::size_t offset, int column) const;

 private:
  std::vector<std::int32_t> characters_;  ///< characters begun before each byte; empty if all ASCII
};

/// Past the end of the quoted scalar that begins at `at`; npos if its closing quote is missing,
/// `at` if no quote stands there.
std::size_t skip_quoted(std::string_view text, std::size_t at);

/// True if a tab is among the white space that begins the line (from 1).
bool tab_indents(std::string_view text, int line);

/// Where the text at `at` goes on after an anchor (`&name` and white space), if one stands there.
std::size_t skip_anchor(std::string_view text, std::size_t at);

}  // namespace heed
