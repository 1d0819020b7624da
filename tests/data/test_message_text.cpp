// Text of others in messages, on terminals and in CSV files.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "autograd/io/message_text.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(message_text)

BOOST_AUTO_TEST_CASE(characters_that_control_a_terminal_are_escaped) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\x1b[2J", "\\x1b[2J"},
      {std::string("a\0b", 3), "a\\x00b"},
      {"a\rb\x07", "a\\x0db\\x07"},
      {"\x7f", "\\u007f"},
      {"\u0080\u009b\u009f", "\\u0080\\u009b\\u009f"},
      {"\u202a\u202e", "\\u202a\\u202e"},
      {"\u2066\u2069", "\\u2066\\u2069"},
      {"\x9b"
       "1m",
       "\\x9b1m"},
      {"\xc3", "\\xc3"}};
  for (const auto& [text, escaped] : cases) {
    BOOST_TEST(for_terminal(text) == escaped);
    BOOST_TEST(shown(text) == escaped);
  }
  // The neighbours of the ranges, and other text, remain.
  const std::string text = "a ~\u00a0\u00e4\u2029\u202f\u2065\u206a\u4e2d\U0001F600\\";
  BOOST_TEST(for_terminal(text) == text);
  BOOST_TEST(shown(text) == text);
  BOOST_TEST(for_terminal("a\tb\nc") == "a\tb\nc");
  BOOST_TEST(shown("a\tb\nc") == "a\\x09b\\nc");
  BOOST_TEST(shown("\u202eabc", 6) == "\\u202e...");
}

BOOST_AUTO_TEST_CASE(cells_of_csv_are_quoted_and_are_no_formulas) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"runs/a", "runs/a"},
      {"a \"b\", c", "\"a \"\"b\"\", c\""},
      {"a\nb", "\"a\nb\""},
      {"=1+1", "'=1+1"},
      {"+a", "'+a"},
      {"-a", "'-a"},
      {"@SUM(A1)", "'@SUM(A1)"},
      {"\t=1", "\"'\t=1\""},
      {"\r=1", "\"'\r=1\""},
      {"=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""},
      {"-1.5e3", "-1.5e3"},
      {"+2", "+2"},
      {"+-2", "'+-2"},
      {"-", "'-"},
      {"a=1", "a=1"},
      {"", ""}};
  for (const auto& [text, cell] : cases) BOOST_TEST(csv_cell(text) == cell);
}

BOOST_AUTO_TEST_SUITE_END()
