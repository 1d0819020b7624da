#pragma once
/// Regular expressions with Unicode classes, as the files of the library tokenizers contain them.
/// There they are read by Oniguruma, here by PCRE2; both follow Perl.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace heed {

class Regex {
 public:
  /// `from`, the file, begins messages. Throws Error(bad_input) if the pattern is malformed.
  Regex(const std::string& pattern, std::string from);

  /// Calls visit(piece, matched) for all parts of a text in order: the matches of the pattern and what
  /// is between them. Empty matches are skipped. The text must be valid UTF-8. Throws Error(bad_input)
  /// if matching takes too many steps. Thread-safe.
  void each_part(std::string_view text,
                 const std::function<void(std::string_view part, bool matched)>& visit) const;
  /// The text with `by` in place of each match.
  std::string replaced(std::string_view text, std::string_view by) const;

 private:
  struct Code;  // pcre2_code, whose header is included in one place
  std::shared_ptr<const Code> code_;
  std::string from_;
};

}  // namespace heed
