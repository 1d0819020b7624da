/// Configs that are meant to exhaust time, memory or the stack.
#include <functional>
#include <random>

#include "tests/processor_time.h"
#include "tests/train/config_cases.h"
#include "train/config/yaml.h"

BOOST_AUTO_TEST_SUITE(config_limits)

namespace {

std::string repeat(const std::string& piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

/// The error message of parse_yaml; "" if it accepts the text.
std::string yaml_refusal(const std::string& text) {
  heed::Problems problems("exp.yaml", {});
  heed::parse_yaml(text, 0, problems);
  try {
    problems.raise();
  } catch (const heed::Error& error) {
    return error.what();
  }
  return "";
}

const std::string copy_override = "data.synthetic.name=copy";
using heed::yaml_max_bytes;

}  // namespace

BOOST_AUTO_TEST_CASE(text_larger_than_128_kib_is_refused) {
  const std::string comment = copy + "#";
  const std::string full = comment + std::string(yaml_max_bytes - comment.size(), 'x');
  BOOST_TEST(refusal(full) == "accepted");
  BOOST_TEST(refusal(full + "x") == "exp.yaml:1:1: larger than 128 KiB");
  BOOST_TEST(refusal("\xEF\xBB\xBF" + full) == "accepted");
}

BOOST_AUTO_TEST_CASE(nodes_deeper_than_32_levels_are_refused) {
  const auto list = [](std::size_t depth) { return repeat("[", depth) + repeat("]", depth); };
  BOOST_TEST(yaml_refusal(list(32)).empty());
  BOOST_TEST(yaml_refusal(list(33)) == "exp.yaml:1:33: nested deeper than 32 levels");
  BOOST_TEST(yaml_refusal(repeat("- ", 33)) == "exp.yaml:1:65: nested deeper than 32 levels");
  BOOST_TEST(yaml_refusal(repeat("{a: ", 33)).ends_with("nested deeper than 32 levels"));
  BOOST_TEST(refusal("", {"x=" + repeat("[", 5000)}).ends_with("nested deeper than 32 levels"));
  // An anchored list of 20 levels, with an alias inside a second list of 20 levels.
  const std::string twice = "- &a " + list(20) + "\n- " + repeat("[", 20) + "*a" + repeat("]", 20);
  BOOST_TEST(yaml_refusal(twice) == "exp.yaml:2:23: nested deeper than 32 levels");
}

BOOST_AUTO_TEST_CASE(more_than_50000_nodes_are_refused) {
  const auto list = [](std::size_t items) { return "[" + repeat("1,", items) + "]"; };
  BOOST_TEST(yaml_refusal(list(49'999)).empty());
  const std::string message = "more than 50000 values after expanding aliases";
  BOOST_TEST(yaml_refusal(list(50'000)) == "exp.yaml:1:100000: " + message);
  // "Billion laughs": each line contains the previous one ten times.
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeat(last + ", ", 9) +
              last + "]\n";
  }
  BOOST_TEST(refusal(laughs).ends_with(message));
}

BOOST_AUTO_TEST_CASE(content_of_nested_anchors_counts_once_per_anchor) {
  const auto nested = [](std::size_t items) {
    return "[&a [&b [&c [" + repeat("1,", items) + "]]]]";
  };
  BOOST_TEST(yaml_refusal(nested(16'000)).empty());
  BOOST_TEST(yaml_refusal(nested(17'000)) ==
             "exp.yaml:1:2: anchors contain more than 50000 values");
}

BOOST_AUTO_TEST_CASE(aliases_that_expand_to_more_than_128_kib_are_refused) {
  const std::string bomb =
      "- &a " + std::string(yaml_max_bytes / 2, 'x') + "\n" + repeat("- *a\n", 1000);
  BOOST_TEST(yaml_refusal(bomb) == "exp.yaml:3:3: aliases expand to more than 128 KiB");
}

BOOST_AUTO_TEST_CASE(errors_beyond_the_maximum_are_only_counted) {
  std::string text = copy;
  for (int i = 0; i < 5000; ++i) text += "trian" + std::to_string(i) + ": 1\n";
  const std::string message = refusal(text);
  BOOST_TEST(std::count(message.begin(), message.end(), '\n') == 100);
  BOOST_TEST(message.ends_with("\nexp.yaml: further errors: 4900"));
  const std::vector<std::string> broken(150, "seed=[");  // errors of the command line count too
  BOOST_TEST(refusal(copy, broken).ends_with("\nexp.yaml: further errors: 50"));
}

BOOST_AUTO_TEST_CASE(long_words_are_truncated_in_messages) {
  const std::string key(1000, 'x');  // near the maximum length of a YAML key
  const std::string word(100'000, 'x');
  const std::string shown = std::string(60, 'x') + "...";
  BOOST_TEST(refusal(copy + key + ": 1") == "exp.yaml:2:1: " + shown + ": unknown key");
  BOOST_TEST(refusal(copy + "task: " + word) ==
             "exp.yaml:2:7: task: expected one of " + tasks() + ", got \"" + shown + "\"");
  BOOST_TEST(refusal(copy + "seed: " + std::string(100'000, '9')) ==
             "exp.yaml:2:7: seed: " + std::string(60, '9') +
                 "... is out of range (allowed: 0 to 2^64 - 1)");
}

BOOST_AUTO_TEST_CASE(time_of_reading_a_config_grows_linearly_with_its_size) {
  const auto numbered = [](std::size_t bytes) {
    std::string text;
    for (int i = 0; text.size() + 20 < bytes; ++i) text += "key" + std::to_string(i) + ": 1\n";
    return text;
  };
  const std::vector<std::function<std::string(std::size_t)>> texts{
      numbered,
      [](std::size_t bytes) { return repeat("seed: 1\n", bytes / 8); },
      [](std::size_t bytes) { return repeat("[", bytes); },
      [](std::size_t bytes) { return "[" + repeat("1,", bytes / 3) + "]"; },
      [](std::size_t bytes) { return "&a [&b [" + repeat("1,", bytes / 8) + "]]"; },
      [](std::size_t bytes) { return "- &a [1, 2]\n" + repeat("- *a\n", bytes / 8); },
      [](std::size_t bytes) { return repeat("\"", bytes); },
      [](std::size_t bytes) { return copy + "name: " + std::string(bytes / 2, 'x') + ": 1"; },
  };
  for (const auto& text : texts) {
    const std::string small = text(yaml_max_bytes / 8), large = text(yaml_max_bytes);
    const auto seconds = [](const std::string& config) {
      return heed::test::min_seconds(1, [&] { BOOST_TEST(refusal(config) != "accepted"); });
    };
    BOOST_TEST_CONTEXT(large.substr(0, 40)) {
      BOOST_TEST(heed::test::growth([&] { return seconds(small); },
                                    [&] { return seconds(large); }) <= heed::test::growth_limit);
    }
  }
}

BOOST_AUTO_TEST_CASE(random_texts_are_refused_or_read_as_configs_without_a_crash) {
  // The texts are composed of YAML's punctuation. An accepted config must remain equal when it is
  // printed and read again.
  const std::vector<std::string> pieces{"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ": ",
                                        ":",
                                        "- ",
                                        "? ",
                                        "&a ",
                                        "*a",
                                        "!x ",
                                        "!",
                                        "|",
                                        ">",
                                        "\"",
                                        "'",
                                        "\n",
                                        "\n  ",
                                        "\n    ",
                                        " ",
                                        "#",
                                        "%",
                                        "---\n",
                                        "...\n",
                                        "\t",
                                        "\\",
                                        "\r\n",
                                        "\xC3\xA4",
                                        "~",
                                        "data:",
                                        "train",
                                        "steps: 5",
                                        "seed: 1",
                                        "model:",
                                        "layers",
                                        "synthetic: {name: copy}",
                                        "<<",
                                        "1",
                                        "0.5",
                                        "-",
                                        ".",
                                        "e9",
                                        "true",
                                        "null",
                                        "\xFF",
                                        std::string(1, '\0')};
  std::mt19937 random(7);
  std::size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) text += pieces[random() % pieces.size()];
    try {
      const heed::Config config = heed::parse_config(text, "exp.yaml", std::vector{copy_override});
      const heed::Config again = heed::parse_config(heed::write_yaml(config), "again.yaml");
      BOOST_TEST(heed::differences(config, again).empty());
      ++accepted;
    } catch (const heed::Error& error) {
      if (error.code != heed::Exit::usage || std::string(error.what()).empty()) throw;
    }
  }
  BOOST_TEST(accepted > 100u);
}

BOOST_AUTO_TEST_SUITE_END()
