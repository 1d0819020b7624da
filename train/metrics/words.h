#pragma once
/// White space as in Python's str.split and str.isspace, on which the metrics' definitions rely.
#include <cstddef>
#include <string_view>
#include <vector>

namespace heed {

/// Bytes (1 to 3) of the white-space character at `text[at]`, or 0 if there is none.
std::size_t space_length(std::string_view text, std::size_t at);

/// The pieces between white space, without empty ones.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace heed
