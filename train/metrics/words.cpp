#include "train/metrics/words.h"

namespace heed {

std::size_t space_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F))
    return 1;
  if (first == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;  // U+0085, U+00A0
  if (first < 0xE1 || first > 0xE3) return 0;
  const unsigned code = (first & 15u) << 12 | (byte(1) & 63u) << 6 | (byte(2) & 63u);
  const bool space = code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                     code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
  const bool well_formed = (byte(1) & 0xC0u) == 0x80u && (byte(2) & 0xC0u) == 0x80u;
  return space && well_formed ? 3 : 0;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0, at = 0;
  const auto end_word = [&] {
    if (at > begin) words.push_back(text.substr(begin, at - begin));
  };
  while (at < text.size()) {
    if (const std::size_t space = space_length(text, at)) {
      end_word();
      begin = at += space;
    } else {
      ++at;
    }
  }
  end_word();
  return words;
}

}  // namespace heed
