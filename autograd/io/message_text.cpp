#include "autograd/io/message_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "autograd/io/utf8.h"

namespace heed {
namespace {

/// The minimum number of edits (insertions, deletions, replacements, swaps of adjacent bytes) that
/// turn a into b: the "optimal string alignment" distance, after Damerau (1964).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  for (std::size_t j = 0; j < width; ++j) cost[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    cost[i * width] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replace = cost[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      const std::size_t insert = cost[i * width + j - 1] + 1;
      const std::size_t remove = cost[(i - 1) * width + j] + 1;
      std::size_t best = std::min({replace, insert, remove});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best = std::min(best, cost[(i - 2) * width + j - 2] + 1);
      }
      cost[i * width + j] = best;
    }
  }
  return cost.back();
}

/// Appends a character, or a byte that does not begin a well-formed one, as for_terminal shows it.
void append_escaped(std::string& out, std::string_view character) {
  const std::size_t length = utf8_length(character, 0);
  const auto byte = static_cast<unsigned char>(character[0]);
  const char32_t code = length == 0 ? byte : utf8_decode(character, 0, length);
  if (length == 0 || (code < 0x20 && code != '\n' && code != '\t')) {
    out += fmt::format("\\x{:02x}", byte);
  } else if ((code >= 0x7F && code <= 0x9F) || (code >= 0x202A && code <= 0x202E) ||
             (code >= 0x2066 && code <= 0x2069)) {
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  } else {
    out += character;
  }
}

}  // namespace

std::string shown(std::string_view text, std::size_t max_length) {
  std::string out;
  while (!text.empty()) {
    const std::size_t taken = std::max<std::size_t>(utf8_length(text, 0), 1);
    if (out.size() + taken > max_length) return out + "...";
    if (text[0] == '\n' || text[0] == '\t') {
      out += text[0] == '\n' ? "\\n" : "\\x09";
    } else {
      append_escaped(out, text.substr(0, taken));
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t taken = std::max<std::size_t>(utf8_length(text, 0), 1);
    append_escaped(out, text.substr(0, taken));
    text.remove_prefix(taken);
  }
  return out;
}

std::string csv_cell(std::string_view text) {
  double number = 0;
  const char *const begin = text.data() + text.starts_with('+'), *const end =
                                                                     text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  const bool is_number = error == std::errc() && stop == end && !text.starts_with("+-"),
             is_formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != text.npos;
  std::string cell = is_formula && !is_number ? "'" : "";
  cell += text;
  if (cell.find_first_of(",;\"\t\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string excerpt(std::string_view text, std::size_t max_length) {
  std::string line = one_line(text);
  std::size_t at = 0;
  for (std::size_t characters = 0; at < line.size(); ++characters) {
    if (characters == max_length) return line.substr(0, at) + "…";
    at += std::max<std::size_t>(utf8_length(line, at), 1);
  }
  return line;
}

std::string nearest(std::string_view given, std::span<const std::string> candidates) {
  std::string word(given);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // the distance is at least longer − shorter
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace heed
