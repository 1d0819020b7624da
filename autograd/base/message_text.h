#pragma once
/// Words from outside, of a file or of the command line, in messages.
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// Such a text as it may stand in a message of one line: control characters and broken UTF-8
/// escaped, and cut to about `most` bytes.
std::string shown(std::string_view text, std::size_t most = 60);

/// The candidate (in lower case) most like a word, or "" if none is near: if more than a third of
/// the letters had to change.
std::string nearest(std::string_view given, std::span<const std::string> candidates);

}  // namespace heed
