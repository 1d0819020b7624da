#pragma once
/// Makes untrusted text, from a file or the command line, safe to print in messages.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The text for a one-line message: control characters and malformed UTF-8 are escaped, and the
/// text is cut to about `max_length` bytes.
std::string shown(std::string_view text, std::size_t max_length = 60);

/// The text on one line. If it is longer than `max_length` characters, the rest is replaced by ….
std::string excerpt(std::string_view text, std::size_t max_length = 100);

/// The candidate that is most similar to `given` in lower case; "" if every candidate differs by
/// more edits than a third of the length of `given` (at least 1). Candidates should be in lower
/// case.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
