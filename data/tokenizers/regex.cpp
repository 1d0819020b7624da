#include "data/tokenizers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {

namespace {

std::string reason(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

/// The pattern with U+0085 (next line) among the spaces: it is one in Unicode and for Oniguruma, but
/// not for PCRE2.
std::string with_next_line(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      const char letter = pattern[++at];
      if (letter == 's')
        out += in_class ? "\\s\\x{85}" : "[\\s\\x{85}]";
      else if (letter == 'S' && !in_class)
        out += "[^\\s\\x{85}]";
      else
        out += {'\\', letter};
      continue;
    }
    if (pattern[at] == '[') in_class = true;
    if (pattern[at] == ']') in_class = false;
    out += pattern[at];
  }
  return out;
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

struct Regex::Code {
  pcre2_code* code;
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& pattern, std::string from) : from_(std::move(from)) {
  const std::string text = with_next_line(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  // Without \C, which could split a character, and without calls of code.
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (code == nullptr)
    throw Error(Exit::bad_input, "{}: pattern \"{}\": {}", from_, shown(pattern), reason(error));
  code_ = std::make_shared<Code>(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // if it fails, the pattern is interpreted
}

void Regex::each_part(std::string_view text,
                      const std::function<void(std::string_view part, bool matched)>& visit) const {
  static thread_local const std::unique_ptr<pcre2_match_data, MatchDataDeleter> match(
      pcre2_match_data_create(1, nullptr));
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t done = 0, from = 0;
  while (from < text.size()) {
    const auto find = [&](std::uint32_t flags) {
      return pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | flags,
                         match.get(), nullptr);
    };
    int found = find(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = find(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw Error(Exit::bad_input, "{}: a pattern cannot be applied to \"{}\": {}", from_,
                  shown(text.substr(from), 40), reason(found));
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(match.get());
    const std::size_t begin = bounds[0], end = bounds[1];
    if (end <= begin) {  // empty: continues after the next character
      from = std::max(begin, from) + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0u) == 0x80u)
        ++from;
      continue;
    }
    if (begin > done) visit(text.substr(done, begin - done), false);
    visit(text.substr(begin, end - begin), true);
    done = from = end;
  }
  if (done < text.size()) visit(text.substr(done), false);
}

std::string Regex::replaced(std::string_view text, std::string_view by) const {
  std::string out;
  each_part(text, [&](std::string_view part, bool matched) { out += matched ? by : part; });
  return out;
}

}  // namespace heed
