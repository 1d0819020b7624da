#pragma once
/// Untrusted text, from a file or the command line, in messages.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The text for a one-line message: control characters and broken UTF-8 are escaped, and it is cut
/// to about `max_length` bytes.
std::string shown(std::string_view text, std::size_t max_length = 60);

/// A text on one line, cut to a width that fits a screen, in characters, with … at the cut.
std::string excerpt(std::string_view text, std::size_t max_length = 100);

/// The candidate (in lower case) most similar to a word, or "" if none is close: if more than a
/// third of the letters differ.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
