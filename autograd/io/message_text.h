#pragma once
/// Text in messages: escaped untrusted text, excerpts, and suggestions for misspelt words.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The text for a one-line message: what for_terminal escapes, tabs and line breaks are escaped, and
/// the text is cut to about `max_length` bytes.
std::string shown(std::string_view text, std::size_t max_length = 60);

/// The text for a terminal: characters that control it (all control characters except tabs and line
/// breaks, among them U+0080 to U+009F; U+202A to U+202E and U+2066 to U+2069, which reorder text)
/// and malformed UTF-8 are escaped. Code points from U+007F on become \uXXXX, as in JSON, so JSON
/// keeps its meaning.
std::string for_terminal(std::string_view text);

/// A cell of a CSV file, in quotes if necessary. A text that spreadsheets would read as a formula
/// (it begins with = + - @, a tab or \r, and is not a number) gets an apostrophe before it (OWASP,
/// "CSV Injection").
std::string csv_cell(std::string_view text);

/// The text on one line (one_line). If it is longer than `max_length` characters, an ellipsis
/// replaces the rest.
std::string excerpt(std::string_view text, std::size_t max_length = 100);

/// The candidate with the smallest edit distance to `given` in lower case (ASCII); "" if every
/// distance exceeds both 1 and a third of the length of `given`. Candidates should be in lower
/// case.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
