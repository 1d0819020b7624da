#pragma once
/// Text in messages: escaped untrusted text, excerpts, and suggestions for misspelt words.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The text for a one-line message: ASCII control characters and malformed UTF-8 are escaped, and
/// the text is cut to about `max_length` bytes.
std::string shown(std::string_view text, std::size_t max_length = 60);

/// The text on one line (one_line). If it is longer than `max_length` characters, an ellipsis
/// replaces the rest.
std::string excerpt(std::string_view text, std::size_t max_length = 100);

/// The candidate with the smallest edit distance to `given` in lower case (ASCII); "" if every
/// distance exceeds both 1 and a third of the length of `given`. Candidates should be in lower
/// case.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
