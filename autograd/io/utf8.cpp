#include "autograd/io/utf8.h"

#include <locale.h>  // declares POSIX's newlocale: NOLINT(modernize-deprecated-headers)
#include <wctype.h>  // NOLINT(modernize-deprecated-headers)

#include "autograd/base/error.h"

namespace heed {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<std::uint8_t>(text[at]) : 0;
}

bool between(std::uint8_t x, int low, int high) { return low <= x && x <= high; }

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  const auto a = byte_at(text, at), b = byte_at(text, at + 1);
  if (a < 0x80) return 1;
  if (between(a, 0xC2, 0xDF)) return between(b, 0x80, 0xBF) ? 2 : 0;
  const bool c = between(byte_at(text, at + 2), 0x80, 0xBF);
  if (between(a, 0xE0, 0xEF)) {
    const int low = a == 0xE0 ? 0xA0 : 0x80;   // below: an overlong form
    const int high = a == 0xED ? 0x9F : 0xBF;  // above: a surrogate
    return between(b, low, high) && c ? 3 : 0;
  }
  if (between(a, 0xF0, 0xF4)) {
    const int low = a == 0xF0 ? 0x90 : 0x80;
    const int high = a == 0xF4 ? 0x8F : 0xBF;  // above: beyond U+10FFFF
    return between(b, low, high) && c && between(byte_at(text, at + 3), 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

char32_t utf8_decode(std::string_view text, std::size_t at, std::size_t length) {
  const auto a = byte_at(text, at);
  if (length == 1) return a;
  char32_t code = a & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = (code << 6) | (byte_at(text, at + i) & 0x3Fu);
  return code;
}

void utf8_append(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      put(0xE0 | (code >> 12));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
    }
    put(0x80 | ((code >> 6) & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count)
    at += std::max<std::size_t>(utf8_length(text, at), 1);
  return count;
}

std::size_t complete_utf8(std::string_view text) {
  const std::size_t max_tail = std::min<std::size_t>(text.size(), 3);
  for (std::size_t tail = 1; tail <= max_tail; ++tail) {
    const std::size_t at = text.size() - tail;
    const auto lead = static_cast<unsigned char>(text[at]);
    if ((lead & 0xC0u) == 0x80u) continue;  // a continuation byte
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return length > tail ? at : text.size();
  }
  return text.size();
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      out += "\uFFFD";
      ++at;
    } else if (text[at] == '\n' || text[at] == '\r') {
      out += ' ';
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

std::string lowercase(std::string_view text) {
  static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (unicode == nullptr)
    throw Error(Exit::failed, "lowercasing requires the locale C.UTF-8, which this system lacks");
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      out += text[at++];
      continue;
    }
    const wint_t code = utf8_decode(text, at, length);
    utf8_append(out, static_cast<char32_t>(::towlower_l(code, unicode)));
    at += length;
  }
  return out;
}

}  // namespace heed
