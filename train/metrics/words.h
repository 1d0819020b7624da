#pragma once
/// White space as in Python's str.split and str.isspace, on which the metrics' definitions rely.
#include <cstddef>
#include <string_view>
#include <vector>

namespace heed {

/// The number of bytes (1 to 3) of the white-space character that begins at `text[at]`; 0 if none
/// begins at this byte.
std::size_t space_length(std::string_view text, std::size_t at);

/// The non-empty pieces between white space.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace heed
