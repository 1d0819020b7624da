#pragma once
/// Tables of text for a terminal.
#include <string>
#include <vector>

namespace heed {

/// One line for each row, with cells padded to the width of their column and two spaces between
/// columns. No row may have more cells than the first. In a row with fewer cells, the last cell may
/// be wider than its column. Line breaks and characters that control a terminal are escaped.
std::string aligned(std::vector<std::vector<std::string>> rows);

}  // namespace heed
