#include "data/tokenizers/unicode.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "autograd/io/utf8.h"

namespace heed {

namespace {

struct Decomposition {
  char32_t code, first, second;  // second is 0 for a single character
};
struct CombiningClass {
  char32_t begin, end;  // the last one included
  int order;
};
#include "data/tokenizers/unicode_table.inc"

// Syllables of Hangul, section 3.12 of the standard.
constexpr char32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161, trails = 0x11A7;
constexpr char32_t lead_count = 19, vowel_count = 21, trail_count = 28;
constexpr char32_t syllable_count = lead_count * vowel_count * trail_count;

int order_of(char32_t code) {
  const auto* const after =
      std::ranges::upper_bound(combining_classes, code, {}, &CombiningClass::begin);
  if (after == std::begin(combining_classes) || code > after[-1].end) return 0;
  return after[-1].order;
}

void decompose(char32_t code, std::u32string& out) {
  if (code < 0xC0) {
    out += code;
  } else if (code >= syllables && code < syllables + syllable_count) {
    const char32_t n = code - syllables;
    out += leads + n / (vowel_count * trail_count);
    out += vowels + n % (vowel_count * trail_count) / trail_count;
    if (n % trail_count != 0) out += trails + n % trail_count;
  } else {
    const auto* const found =
        std::ranges::lower_bound(decompositions, code, {}, &Decomposition::code);
    if (found == std::end(decompositions) || found->code != code) {
      out += code;
    } else {
      decompose(found->first, out);
      if (found->second != 0) decompose(found->second, out);
    }
  }
}

/// The composition of two characters; 0: none.
char32_t composed(char32_t a, char32_t b) {
  if (a >= leads && a < leads + lead_count && b >= vowels && b < vowels + vowel_count)
    return syllables + ((a - leads) * vowel_count + (b - vowels)) * trail_count;
  if (a >= syllables && a < syllables + syllable_count && (a - syllables) % trail_count == 0 &&
      b > trails && b < trails + trail_count)
    return a + (b - trails);
  static const auto pairs = [] {
    std::unordered_map<std::uint64_t, char32_t> all;
    for (const Decomposition& d : decompositions) {
      if (d.second != 0 && !std::ranges::binary_search(not_composed, d.code))
        all.emplace(std::uint64_t{d.first} << 32 | d.second, d.code);
    }
    return all;
  }();
  const auto found = pairs.find(std::uint64_t{a} << 32 | b);
  return found == pairs.end() ? 0 : found->second;
}

/// Decomposed, with combining marks in canonical order.
std::u32string decomposed(std::string_view text) {
  std::u32string codes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    decompose(utf8_decode(text, at, length), codes);
    at += length;
  }
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto is_mark = [](char32_t code) { return order_of(code) != 0; };
    const auto marks = std::find_if(begin, codes.end(), is_mark),
               end = std::find_if_not(marks, codes.end(), is_mark);
    std::stable_sort(marks, end, [](char32_t a, char32_t b) { return order_of(a) < order_of(b); });
    begin = end;
  }
  return codes;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string utf8_of(const std::u32string& codes) {
  std::string out;
  for (const char32_t code : codes) utf8_append(out, code);
  return out;
}

}  // namespace

std::string nfd(std::string_view text) {
  return is_ascii(text) ? std::string(text) : utf8_of(decomposed(text));
}

std::string nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::u32string codes = decomposed(text), out;
  std::size_t starter = std::u32string::npos;
  int last = 0;  // class of the last character after the starter that was not composed
  for (const char32_t code : codes) {
    const int order = order_of(code);
    const bool blocked = starter == std::u32string::npos ||
                         (starter + 1 < out.size() && (last == 0 || last >= order));
    if (const char32_t both = blocked ? 0 : composed(out[starter], code); both != 0) {
      out[starter] = both;
      continue;
    }
    if (order == 0) starter = out.size();
    last = order;
    out += code;
  }
  return utf8_of(out);
}

}  // namespace heed
