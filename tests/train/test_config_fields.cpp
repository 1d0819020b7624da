/// The table of keys: every key has help, and its values are read back exactly as printed.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "data/inputs/input_info.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "train/config/config.h"
#include "train/config/fields.h"
#include "train/config/overrides.h"

BOOST_AUTO_TEST_SUITE(config_fields)

using heed::Config;
using heed::Field;
using heed::FieldKind;

namespace {

using Random = std::mt19937_64;

std::string random_text(Random& random) {
  static const std::vector<std::string> pieces{
      "a", "Z", "0", ".", "/", "-", " ",  "\"", "'",      "\\",     ":",      "#",    "{", "]",
      ",", "&", "*", "!", "|", "ü", "日", "😀",  "\u0085", "\u2028", "\uFEFF", "null", "~"};
  std::string text;
  for (std::size_t n = 1 + random() % 8; n > 0; --n) text += pieces[random() % pieces.size()];
  return text;
}

/// A random double of any magnitude strictly between the bounds of this field.
double random_number(const Field& field, Random& random) {
  for (;;) {
    const double exponent = std::uniform_real_distribution(-300.0, 300.0)(random);
    double x = random() % 2 == 0 ? std::pow(10.0, exponent)
                                 : std::uniform_real_distribution(0.0, 1.0)(random);
    if (random() % 8 == 0) x = 0.0;
    if (random() % 8 == 0) x = 0.5;
    if (x > field.range.low && x < field.range.high) return x;
  }
}

/// A random value for this field as YAML, formatted without `field.print`.
std::string random_value(const Field& field, Random& random) {
  const auto number = [&] {
    char text[64];
    std::snprintf(text, sizeof text, "%.17g", random_number(field, random));
    return std::string(text);
  };
  switch (field.kind) {
    case FieldKind::integer: {
      const auto low = static_cast<std::int64_t>(field.range.low);
      const auto high = static_cast<std::int64_t>(std::min(field.range.high, 9e15));
      return std::to_string(std::uniform_int_distribution(low, high)(random));
    }
    case FieldKind::number:
      return number();
    case FieldKind::boolean:
      return random() % 2 == 0 ? "true" : "false";
    case FieldKind::text:
      return heed::yaml_text(random_text(random));
    case FieldKind::files: {
      std::string list = "[";
      for (std::size_t n = random() % 4; n > 0; --n) {
        list += heed::yaml_text(random_text(random)) + (n > 1 ? ", " : "");
      }
      return list + "]";
    }
    case FieldKind::choice:
      return field.choices[random() % field.choices.size()];
    case FieldKind::pair:
      return "[" + number() + ", " + number() + "]";
    case FieldKind::integers: {
      std::string list;
      for (std::size_t n = 1 + random() % 4; n > 0; --n)
        list += (list.empty() ? "" : ", ") + std::to_string(1 + random() % 1000);
      return "[" + list + "]";
    }
  }
  return "";
}

heed::YamlNode node_of(const std::string& text, heed::Problems& problems) {
  auto node = heed::parse_yaml(text, 0, problems);
  problems.raise();
  BOOST_REQUIRE(node.has_value());
  return *node;
}

/// Reads a resolved config with the rows of the table only, without the checks between keys.
Config read_all(const std::string& yaml) {
  heed::Problems problems("resolved.yaml", {});
  const heed::YamlNode tree = node_of(yaml, problems);
  Config config;
  for (const Field& field : heed::fields()) {
    const heed::YamlNode* node = &tree;
    for (std::size_t begin = 0; begin <= field.key.size();) {
      const std::size_t end = std::min(field.key.find('.', begin), field.key.size());
      const heed::YamlEntry* entry = node->find(field.key.substr(begin, end - begin));
      BOOST_REQUIRE_MESSAGE(entry, field.key + " is not printed");
      node = &entry->value;
      begin = end + 1;
    }
    field.set(config, field.read(*node));
  }
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(json_values_have_the_types_of_their_keys) {
  Config config;
  config.name = "a \"b\" \\";
  config.data.train.source = {"true", "two words"};
  const nlohmann::json json = heed::config_json(config);
  BOOST_TEST(json.at("name") == config.name);
  BOOST_TEST(json.at("seed") == 1);
  BOOST_TEST(json.at("task") == "seq2seq");
  BOOST_TEST(json.at("optim").at("betas").is_array());
  BOOST_TEST(json.at("optim").at("lr").is_number());
  BOOST_TEST(json.at("model").at("d_model").is_number_integer());
  BOOST_TEST(json.at("model").at("tie_embeddings") == true);
  BOOST_TEST(json.at("data").at("train").at("source") ==
             nlohmann::json::array({"true", "two words"}));
  for (const Field& field : heed::fields()) {
    std::string pointer = "/" + field.key;
    std::ranges::replace(pointer, '.', '/');
    BOOST_TEST(json.contains(nlohmann::json::json_pointer(pointer)), field.key);
  }
}

BOOST_AUTO_TEST_CASE(random_values_of_every_key_are_read_back_exactly) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Config config;
    std::size_t changed = 0;
    for (const Field& field : heed::fields()) {
      heed::Problems problems("value", {});
      const std::string before = field.print(config);
      const std::string value = random_value(field, random);
      field.set(config, field.read(node_of(value, problems)));
      changed += field.print(config) != before;
    }
    BOOST_TEST(changed > heed::fields().size() / 2);
    const std::string yaml = heed::write_yaml(config);
    const Config again = read_all(yaml);
    BOOST_TEST(heed::differences(config, again).empty());
    BOOST_TEST(heed::write_yaml(again) == yaml);
    // A JSON object is valid YAML.
    BOOST_TEST(heed::write_yaml(read_all(heed::config_json(config).dump())) == yaml);
    // The values of a few keys are also compared directly, without being printed.
    BOOST_TEST(again.optim.lr == config.optim.lr);
    BOOST_TEST((again.optim.betas == config.optim.betas));
    BOOST_TEST(again.tokenizer.model == config.tokenizer.model);
    BOOST_TEST((again.data.test.text == config.data.test.text));
  }
}

BOOST_AUTO_TEST_CASE(no_two_keys_share_a_member) {
  // If two rows share a member, changing the value of one key changes that of another.
  Random random(2);
  for (const Field& field : heed::fields()) {
    if (field.open && field.choices.size() == 1) continue;  // only a plugin can add a second choice
    Config config;
    for (int attempt = 0; attempt < 50 && field.print(config) == field.print(Config{}); ++attempt) {
      heed::Problems problems("value", {});
      field.set(config, field.read(node_of(random_value(field, random), problems)));
    }
    const std::vector<std::string> expected{field.key};
    BOOST_TEST((heed::differences(config, Config{}) == expected), field.key);
  }
}

BOOST_AUTO_TEST_CASE(every_key_can_be_overridden) {
  Random random(3);
  for (const Field& field : heed::fields()) {
    const std::string value = random_value(field, random);
    const std::vector<std::string> overrides{field.key + "=" + value};
    heed::Problems problems("exp.yaml", overrides);
    heed::YamlNode root;
    heed::apply_overrides(root, overrides, problems);
    BOOST_TEST(!problems.any(), overrides[0]);
    const heed::YamlNode* node = &root;
    while (node->kind == heed::YamlNode::Kind::map) node = &node->entries.at(0).value;
    BOOST_CHECK_NO_THROW(field.read(*node));
  }
}

BOOST_AUTO_TEST_CASE(defaults_are_in_the_ranges_of_their_keys) {
  for (const Field& field : heed::fields()) {
    heed::Problems problems("default", {});
    BOOST_TEST((field.read(node_of(field.print(Config{}), problems)) == field.get(Config{})),
               field.key);
  }
}

BOOST_AUTO_TEST_CASE(rows_of_the_table_are_unique_and_have_help) {
  std::set<std::string> keys;
  for (const Field& field : heed::fields()) {
    BOOST_TEST(keys.insert(field.key).second, field.key << " is in the table twice");
    BOOST_TEST(field.help.size() > 10, field.key << " has no help");
    BOOST_TEST(field.help.ends_with("."), field.key);
    for (std::size_t dot = field.key.find('.'); dot != std::string::npos;
         dot = field.key.find('.', dot + 1)) {
      const std::string section = field.key.substr(0, dot);
      BOOST_TEST(heed::find_section(section), section << " is not a section");
      BOOST_TEST(!heed::find_field(section), section << " is a key and a section");
    }
  }
  for (const heed::Section& section : heed::sections()) {
    BOOST_TEST(!heed::names_in(section.key).empty(), section.key << " contains no keys");
  }
}

BOOST_AUTO_TEST_CASE(keys_that_a_position_scheme_pattern_or_input_lists_exist) {
  const auto check = [](const std::string& section, const auto& rows) {
    for (const auto& row : rows) {
      for (const std::string_view key : row.keys) {
        const std::string full = section + std::string(key);
        BOOST_TEST((key.empty() || heed::find_field(full) || heed::find_section(full)),
                   row.name << " lists " << full);
      }
    }
  };
  check("model.", heed::position_schemes());
  check("model.", heed::pattern_table);
  check("data.", heed::input_table());
}

BOOST_AUTO_TEST_CASE(every_input_except_text_states_the_width_and_content_of_its_rows) {
  for (const heed::InputInfo& input : heed::input_table()) {
    BOOST_TEST((input.read == nullptr) == (input.name == "text"));
    BOOST_TEST(((input.width == nullptr) == (input.read == nullptr)), input.name);
    BOOST_TEST(((input.captions == nullptr) == (input.read == nullptr)), input.name);
    BOOST_TEST((input.rows == nullptr) == (input.noun.empty() || input.rows_key.empty()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
