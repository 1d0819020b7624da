#pragma once
/// UTF-8 as the Unicode Standard defines it (table 3-7): no overlong forms, no surrogates, nothing
/// beyond U+10FFFF.
#include <cstddef>
#include <string>
#include <string_view>

namespace heed {

/// Length in bytes (1 to 4) of the well-formed character at `text[at]`, or 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The code point at `text[at]`; `length` is the result of utf8_length and must not be 0.
char32_t utf8_decode(std::string_view text, std::size_t at, std::size_t length);

/// Appends one code point in UTF-8.
void utf8_append(std::string& out, char32_t code);

/// The position of the first byte that is not part of a well-formed character; npos if the text is
/// valid.
std::size_t invalid_utf8(std::string_view text);

/// The number of characters: code points, plus bytes that are not part of a well-formed one.
std::size_t character_count(std::string_view text);

/// The length of the text in bytes, without an incomplete character at its end.
std::size_t complete_utf8(std::string_view text);

/// Valid UTF-8 on one line: every malformed byte becomes U+FFFD, and each \n and \r becomes a
/// space. Required if the output has one line per input line, because a model may generate any
/// text.
std::string one_line(std::string_view text);

/// The text in lower case by Unicode's simple mapping (UnicodeData.txt, field 13, as implemented by
/// the C library), one code point to one code point, independent of language: "ÄÖÜ" to "äöü", "Σ"
/// to "σ", "İ" to "i". Malformed bytes are copied. Throws Error(failed) if the system lacks the
/// locale C.UTF-8.
std::string lowercase(std::string_view text);

}  // namespace heed
