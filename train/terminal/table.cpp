#include "train/terminal/table.h"

#include <algorithm>

#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"

namespace heed {

std::string aligned(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows)
    for (std::string& cell : row) cell = shown(cell, std::string::npos);
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  const auto counts = [&](const std::vector<std::string>& row, std::size_t i) {
    return i + 1 < row.size() || row.size() == widths.size();
  };
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (counts(row, i)) widths[i] = std::max(widths[i], character_count(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = counts(row, i) ? widths[i] + 2 : 0;
      const std::size_t used = character_count(row[i]);
      line += row[i] + std::string(width > used ? width - used : 0, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace heed
