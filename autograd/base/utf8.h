#pragma once
/// UTF-8 as the Unicode Standard defines it (table 3-7): no overlong forms, no surrogates, nothing
/// beyond U+10FFFF.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Length in bytes (1 to 4) of the well-formed character at `text[at]`, or 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The code point at `text[at]`; `length` is from utf8_length.
char32_t utf8_decode(std::string_view text, std::size_t at, std::size_t length);

/// Appends one code point.
void utf8_append(std::string& out, char32_t code);

/// The position of the first byte that is not part of a well-formed character; npos if the text is
/// valid.
std::size_t invalid_utf8(std::string_view text);

/// The number of characters: code points, and each byte that is not part of one.
std::size_t character_count(std::string_view text);

/// The length of the text in bytes, without an incomplete character at its end.
std::size_t complete_utf8(std::string_view text);

/// Valid UTF-8 on one line: every malformed byte becomes U+FFFD, and each \n and \r a
/// space. Required where output has one line per input line, because a model may generate any text.
std::string one_line(std::string_view text);

/// Lower case by Unicode's simple mapping (UnicodeData.txt, field 13, as implemented by the C
/// library), one code point to one code point, independent of language: "ÄÖÜ" to "äöü", "Σ" to "σ",
/// "İ" to "i". Malformed bytes are copied.
std::string lowercase(std::string_view text);

}  // namespace heed
