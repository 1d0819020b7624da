#include <boost/test/unit_test.hpp>

#include "autograd/io/utf8.h"

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(all_code_points_except_surrogates_are_valid) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    heed::utf8_append(text, code);
    const bool surrogate = 0xD800 <= code && code < 0xE000;
    const auto length = heed::utf8_length(text, 0);
    if (surrogate ? length != 0
                  : length != text.size() || heed::utf8_decode(text, 0, length) != code) {
      BOOST_ERROR("U+" << std::hex << static_cast<std::uint32_t>(code));
    }
  }
}

BOOST_AUTO_TEST_CASE(malformed_sequence_is_located) {
  using namespace std::string_literals;
  // Unicode Standard, table 3-7: overlong forms, lone continuation bytes, surrogates, values
  // above U+10FFFF, truncation.
  for (const auto& bad :
       {"\x80"s, "\xBF"s, "\xC0\x80"s, "\xC1\xBF"s, "\xC3"s, "\xC3("s, "\xE0\x9F\xBF"s, "\xE2\x82"s,
        "\xED\xA0\x80"s, "\xF0\x8F\xBF\xBF"s, "\xF0\x9F\x98"s, "\xF4\x90\x80\x80"s,
        "\xF5\x80\x80\x80"s, "\xFF"s, "\xFE"s}) {
    BOOST_TEST(heed::invalid_utf8("ok " + bad) == 3u);
    BOOST_TEST(heed::invalid_utf8("ok " + bad + " more") == 3u);
  }
  BOOST_TEST(heed::invalid_utf8("gr\u00FCn \u65E5\u672C \U0001F600") == std::string::npos);
  BOOST_TEST(heed::invalid_utf8("") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(one_line_replaces_newlines_and_invalid_bytes) {
  BOOST_TEST(heed::one_line("a\nb\r\nc") == "a b  c");
  BOOST_TEST(heed::one_line("a\xE2\x82z") == "a\uFFFD\uFFFDz");
  BOOST_TEST(heed::one_line("grün 日本") == "grün 日本");
  BOOST_TEST(heed::one_line("") == "");
}

BOOST_AUTO_TEST_CASE(lowercase_maps_letters_of_several_scripts) {
  BOOST_TEST(heed::lowercase("Hello, WORLD 123") == "hello, world 123");
  BOOST_TEST(heed::lowercase("ÄÖÜß ÀÉÎÕŸ ŁŻŐŘĞ ẞ") == "äöüß àéîõÿ łżőřğ ß");
  BOOST_TEST(heed::lowercase("ΑΒΓΔΩ ΆΈΏ Σ") == "αβγδω άέώ σ");
  BOOST_TEST(heed::lowercase("АБВЯ ЁЂЇҐ ԱՖ Ⴀ") == "абвя ёђїґ աֆ ⴀ");
  BOOST_TEST(heed::lowercase("İI ǅ Ⓐ Ａ 𐐀 𞤀 K Å") == "ii ǆ ⓐ ａ 𐐨 𞤢 k å");
  BOOST_TEST(heed::lowercase("×÷日本 ª ʻ") == "×÷日本 ª ʻ");
  BOOST_TEST(heed::lowercase("A\xC3(B") == "a\xC3(b");  // malformed bytes are unchanged
}

BOOST_AUTO_TEST_CASE(lowercase_is_idempotent) {
  int changed = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (0xD800 <= code && code < 0xE000) continue;
    std::string text;
    heed::utf8_append(text, code);
    const std::string once = heed::lowercase(text);
    changed += once != text;
    if (heed::lowercase(once) != once)
      BOOST_ERROR("U+" << std::hex << static_cast<std::uint32_t>(code));
  }
  BOOST_TEST(changed >= 1433);  // mappings in UnicodeData.txt 14.0; later versions have more
}

BOOST_AUTO_TEST_SUITE_END()
