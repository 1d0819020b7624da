#include "train/yaml_raw.h"

#include <boost/test/unit_test.hpp>

#include "train/yaml.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(yaml_raw)

BOOST_AUTO_TEST_CASE(characters_of_utf8) {
  BOOST_TEST(utf8_size("") == 0u);
  BOOST_TEST(utf8_size("ab") == 1u);
  for (const std::string text : {"\u0080", "\u07FF"}) BOOST_TEST(utf8_size(text + "x") == 2u);
  for (const std::string text : {"\u0800", "\uD7FF", "\uE000", "\uFFFF"})
    BOOST_TEST(utf8_size(text + "x") == 3u);
  for (const std::string text : {"\U00010000", "\U0010FFFF"})
    BOOST_TEST(utf8_size(text + "x") == 4u);
  // Cut short, a byte that goes on with nothing, written too long, surrogates, beyond U+10FFFF.
  for (const std::string text :
       {"\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3x", "\xE2\x82x", "\xC0\x80", "\xC1\xBF",
        "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"})
    BOOST_TEST(utf8_size(text) == 0u);
}

BOOST_AUTO_TEST_CASE(columns_are_counted_in_characters) {
  const std::string text = "aä\n日x";
  const Columns columns(text);
  BOOST_TEST(columns.at(0, 0) == 1);
  BOOST_TEST(columns.at(3, 3) == 3);
  BOOST_TEST(columns.at(4, 0) == 1);
  BOOST_TEST(columns.at(7, 3) == 2);
  // A place that is none: the column as it was given.
  BOOST_TEST(columns.at(100, 4) == 5);
  BOOST_TEST(columns.at(2, 4) == 5);
  BOOST_TEST(Columns("abc").at(2, 2) == 3);
}

BOOST_AUTO_TEST_CASE(what_is_skipped) {
  BOOST_TEST(skip_anchor("a: &name  x", 3) == 10u);
  BOOST_TEST(skip_anchor("&name", 0) == 0u);
  BOOST_TEST(skip_anchor("&name \n", 0) == 0u);
  BOOST_TEST(skip_anchor("abc", 0) == 0u);
  BOOST_TEST(skip_anchor("abc", 3) == 3u);
  BOOST_TEST(skip_quoted("abc", 1) == 1u);
  BOOST_TEST(skip_quoted("abc", 3) == 3u);
  BOOST_TEST(skip_quoted("\"a\\\"b\" c", 0) == 6u);
  BOOST_TEST(skip_quoted("'a''b' c", 0) == 6u);
  BOOST_TEST(skip_quoted("'a\\' c", 0) == 4u);
  BOOST_TEST(skip_quoted("'a", 0) == std::string_view::npos);
  BOOST_TEST(skip_quoted("\"a\\", 0) == std::string_view::npos);
}

BOOST_AUTO_TEST_CASE(tabs_that_indent) {
  const std::string text = "a:\n\tb: 1\n  c: 2\td\n  ";
  BOOST_TEST(!tab_indents(text, 1));
  BOOST_TEST(tab_indents(text, 2));
  BOOST_TEST(!tab_indents(text, 3));
  BOOST_TEST(!tab_indents(text, 4));
  BOOST_TEST(!tab_indents(text, 9));  // a line that is not there
  BOOST_TEST(!tab_indents("", 1));
}

BOOST_AUTO_TEST_CASE(text_is_quoted_where_it_would_mean_something_else) {
  for (const char* plain : {"a", "a.b", "a-b", "data/x_1", "nullx"})
    BOOST_TEST(yaml_text(plain) == plain);
  for (const std::string odd : {"", "-a", ".a", "null", "Null", "NULL", "a b", "~", "ä", "#a"})
    BOOST_TEST(yaml_text(odd) == '"' + odd + '"');
  BOOST_TEST(yaml_text("a\"b\\") == "\"a\\\"b\\\\\"");
}

BOOST_AUTO_TEST_SUITE_END()
