/// Text printed as YAML.
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

BOOST_AUTO_TEST_SUITE_END()
