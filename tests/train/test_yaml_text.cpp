/// Text printed as YAML.
#include <yaml-cpp/yaml.h>

#include <boost/test/unit_test.hpp>

#include "train/config/yaml.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(yaml_text_of)

BOOST_AUTO_TEST_CASE(plain_words_are_unquoted_and_other_text_is_quoted) {
  for (const char* plain : {"a", "a.b", "a-b", "data/x_1", "nullx"})
    BOOST_TEST(yaml_text(plain) == plain);
  for (const std::string special : {"", "-a", ".a", "null", "Null", "NULL", "a b", "~", "ä", "#a"})
    BOOST_TEST(yaml_text(special) == '"' + special + '"');
  BOOST_TEST(yaml_text("a\"b\\") == "\"a\\\"b\\\\\"");
}

// A terminal that shows a config, and an editor, must not obey it; and the text is that of the config.
BOOST_AUTO_TEST_CASE(characters_that_control_a_terminal_are_escapes_of_yaml) {
  BOOST_TEST(yaml_text("a\nb\t\x1B[31m") == R"("a\nb\t\x1b[31m")");
  BOOST_TEST(yaml_text("\u202Egnp.exe\u009B1m") == R"("\u202egnp.exe\u009b1m")");
  for (const std::string text :
       {"line\nbreak", "tab\tbed", "\x1B[31m", "\u202Egnp", "a\\nb", "\x7F", "\u0085"})
    BOOST_TEST(YAML::Load(yaml_text(text)).as<std::string>() == text);
}

BOOST_AUTO_TEST_SUITE_END()
