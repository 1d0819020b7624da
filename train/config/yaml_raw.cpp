#include "train/config/yaml_raw.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/utf8.h"

namespace heed {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::optional<TextFlaw> find_flaw(std::string_view text) {
  int line = 1, column = 1;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] >= ' ' && text[i] <= '~') {  // nearly all of it
      ++i;
      ++column;
      continue;
    }
    const std::size_t size = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (size == 0) return TextFlaw{line, column, "invalid UTF-8"};
    const bool line_end = byte == '\n' || (byte == '\r' && text.substr(i + 1).starts_with('\n'));
    if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7F) {
      return TextFlaw{line, column, fmt::format("control character 0x{:02x}", byte)};
    }
    ++column;
    if (byte == '\n') {
      ++line;
      column = 1;
    }
    i += size;
  }
  return std::nullopt;
}

Columns::Columns(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return;
  characters_.reserve(text.size() + 1);
  std::int32_t begun = 0;
  for (const char c : text) {
    characters_.push_back(begun);
    begun += !continues(c);
  }
  characters_.push_back(begun);
}

int Columns::at(std::size_t offset, int column) const {
  const auto bytes = static_cast<std::size_t>(std::max(column, 0));
  if (characters_.empty() || offset >= characters_.size() || bytes > offset) return column + 1;
  return characters_[offset] - characters_[offset - bytes] + 1;
}

std::size_t skip_anchor(std::string_view text, std::size_t at) {
  constexpr std::string_view blank = " \t\r\n";
  if (at >= text.size() || text[at] != '&') return at;
  const std::size_t name_end = std::min(text.find_first_of(blank, at), text.size());
  const std::size_t next = text.find_first_not_of(blank, name_end);
  return next == std::string_view::npos ? at : next;
}

std::size_t skip_quoted(std::string_view text, std::size_t at) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return at;
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || !text.substr(i + 1).starts_with('\'')) return i + 1;
      ++i;  // '' is an apostrophe
    }
  }
  return std::string_view::npos;
}

bool tab_indents(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int i = 1; i < line && begin < text.size(); ++i) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  const std::string_view rest = text.substr(begin);
  return rest.substr(0, rest.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

}  // namespace heed
