#pragma once
/// Untrusted text, from a file or the command line, in messages.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The text for a one-line message: control characters and malformed UTF-8 are escaped, and the
/// text is cut to about `max_length` bytes.
std::string shown(std::string_view text, std::size_t max_length = 60);

/// The text on one line, cut to `max_length` characters, with … at the cut.
std::string excerpt(std::string_view text, std::size_t max_length = 100);

/// The candidate (in lower case) that is most similar to a word, or "" if more than a third of the
/// letters differ in every candidate.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
