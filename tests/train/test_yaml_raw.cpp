#include "train/config/yaml_raw.h"

#include <boost/test/unit_test.hpp>

#include "train/config/yaml.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(yaml_raw)

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
