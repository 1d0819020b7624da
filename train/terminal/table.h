#pragma once
/// Tables of text for a terminal.
#include <string>
#include <vector>

namespace heed {

/// One line for each row, its cells padded to the width of their columns, with two spaces between
/// columns. The last cell of a row with fewer cells than the first row may be wider than its
/// column.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace heed
