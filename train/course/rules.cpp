#include "train/course/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "autograd/io/message_text.h"

namespace heed::course {
namespace {

/// The code with comments and the contents of strings as spaces; line breaks remain.
std::string without_comments(std::string code) {
  enum class In { code, line, block, string, character } in = In::code;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string_view two = std::string_view(code).substr(i, 2);
    const bool keeps = in == In::code;
    char& c = code[i];
    if (in == In::code) {
      if (two == "//") in = In::line;
      if (two == "/*") in = In::block;
      if (c == '"') in = In::string;
      if (c == '\'' && (i == 0 || std::isdigit(static_cast<unsigned char>(code[i - 1])) == 0))
        in = In::character;
      if (in != In::code) c = ' ';
      continue;
    }
    if (c == '\n') {
      if (in != In::block) in = In::code;
      continue;
    }
    const bool quoted = in == In::string || in == In::character;
    if (quoted && c == '\\' && i + 1 < code.size() && code[i + 1] != '\n') code[++i] = ' ';
    if ((in == In::string && c == '"') || (in == In::character && c == '\'')) in = In::code;
    if (in == In::block && two == "*/") {
      code[i + 1] = ' ';
      in = In::code;
    }
    if (!keeps) c = ' ';
  }
  return code;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string> includes_of(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return {};
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return {};
  const std::size_t name = line.find_first_not_of(" \t", word + 7);
  if (name == std::string::npos) return {""};
  const std::size_t end = line.find(line[name] == '<' ? '>' : line[name], name + 1);
  return {line.substr(name, end == std::string::npos ? end : end - name + 1)};
}

/// Whether the include is of the form <vector>.
bool standard(const std::string& include) {
  return include.starts_with('<') && std::all_of(include.begin() + 1, include.end() - 1, in_word);
}

int line_at(const std::string& text, std::size_t at) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::vector<std::string> all_includes(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    for (const std::string& include : includes_of(text.substr(at, end - at)))
      all.push_back(include);
    at = end + 1;
  }
  return all;
}

}  // namespace

std::string broken_rule(const std::string& exercise, const std::string& solution,
                        const std::vector<std::string>& avoid) {
  const std::vector<std::string> permitted = all_includes(solution);
  for (const std::string& include : all_includes(exercise)) {
    if (standard(include) || std::ranges::find(permitted, include) != permitted.end()) continue;
    return fmt::format(
        ":{}: includes {}, but an exercise includes only what its starter includes "
        "and headers of the standard library",
        line_at(exercise, exercise.find(include)), shown(include));
  }
  const std::string code = without_comments(exercise);
  for (const std::string& name : avoid) {
    for (std::size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at > 0 && in_word(code[at - 1])) || (end < code.size() && in_word(code[end]))) continue;
      return fmt::format(":{}: uses {}, which this chapter asks you to write", line_at(code, at),
                         name);
    }
  }
  return "";
}

}  // namespace heed::course
