/// Reads the values of keys from YAML and prints them as YAML.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autograd/io/message_text.h"
#include "train/config/fields.h"

namespace heed {
namespace {

bool is_bare(const YamlNode& node) { return node.kind == YamlNode::Kind::scalar && !node.quoted; }

/// Throws a ValueError such as `expected a whole number, got "many"`.
[[noreturn]] void refuse(const YamlNode& node, std::string_view what, std::string_view hint = "") {
  using Kind = YamlNode::Kind;
  const std::string value =
      node.kind == Kind::scalar
          ? fmt::format("{}\"{}\"", node.quoted ? "the quoted text " : "", shown(node.text))
      : node.kind == Kind::null ? "nothing"
      : node.kind == Kind::list ? "a list"
                                : "keys and values";
  throw ValueError{node.place, fmt::format("expected {}, got {}{}", what, value, hint)};
}

/// The value of a text for which is_decimal is true; nullopt if it is out of the range of T.
template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

/// A whole number in any notation: 10000, 1e4, 1.0e4. The value is exact; null if it is too large
/// to be read exactly.
nlohmann::json read_integer(const YamlNode& node, const std::string& what) {
  if (!is_bare(node) || !is_decimal(node.text)) refuse(node, what);
  if (node.text.find_first_of(".eE") == std::string::npos) {
    if (const auto value = parse<std::int64_t>(node.text)) return *value;
    if (const auto value = parse<std::uint64_t>(node.text)) return *value;
    return nullptr;
  }
  const std::optional<double> x = parse<double>(node.text);
  if (x && *x != std::floor(*x)) refuse(node, what);
  constexpr double exact = 9007199254740992;  // 2^53: doubles represent every smaller whole number
  if (!x || std::abs(*x) >= exact) return nullptr;
  return static_cast<std::int64_t>(*x);
}

nlohmann::json read_number(const YamlNode& node, const std::string& what = "a number") {
  if (!is_bare(node) || !is_decimal(node.text)) refuse(node, what);
  const std::optional<double> value = parse<double>(node.text);
  if (!value) throw ValueError{node.place, shown(node.text) + " is too large or too small"};
  return *value;
}

/// Returns the number. Throws ValueError if it is outside the field's range.
nlohmann::json in_range(nlohmann::json value, const Field& field, const YamlNode& node) {
  const auto [low, high, low_in, high_in] = field.range;
  const double x = value.is_null() ? NAN : value.get<double>();
  if ((low_in ? x >= low : x > low) && (high_in ? x <= high : x < high)) return value;
  throw ValueError{node.place, fmt::format("{} is out of range (allowed: {})", shown(node.text),
                                           field.range_text())};
}

std::string read_text(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar) refuse(node, "text");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(node.text, is_control))
    refuse(node, "one line without control characters");
  return node.text;
}

std::string read_choice(const YamlNode& node, const Field& field) {
  const std::vector<std::string>& choices = field.choices;
  if (std::ranges::find(choices, node.text) != choices.end()) return node.text;
  const std::string near = nearest(node.text, choices);
  std::string hint = near.empty() ? "" : " (did you mean " + near + "?)";
  if (near.empty() && field.open && is_registered_name(node.text))
    hint = " (a name with a dot is registered by a plugin: is its library listed in plugins?)";
  refuse(node, fmt::format("one of {}", fmt::join(choices, ", ")), hint);
}

nlohmann::json read_files(const YamlNode& node, const std::string& what) {
  const bool single = node.kind == YamlNode::Kind::scalar;
  if (!single && node.kind != YamlNode::Kind::list) refuse(node, what);
  nlohmann::json names = nlohmann::json::array();
  for (const YamlNode& item : single ? std::vector{node} : node.items) {
    const std::string name = read_text(item);
    if (name.empty()) throw ValueError{item.place, "expected a name, got empty text"};
    names.push_back(name);
  }
  return names;
}

/// Reads a pair of numbers or a list of whole numbers.
nlohmann::json read_numbers(const YamlNode& node, const Field& field) {
  const bool pair = field.kind == FieldKind::pair;
  if (node.kind != YamlNode::Kind::list)
    refuse(node, pair ? "two numbers, as in [0.9, 0.98]" : "a list of whole numbers, as in [2, 2]");
  if (pair && node.items.size() != 2)
    throw ValueError{node.place,
                     fmt::format("expected two numbers, got a list of {}", node.items.size())};
  if (node.items.empty()) throw ValueError{node.place, "expected at least one number"};
  nlohmann::json all = nlohmann::json::array();
  for (const YamlNode& item : node.items)
    all.push_back(
        in_range(pair ? read_number(item) : read_integer(item, "a whole number"), field, item));
  return all;
}

std::string yaml_of(const nlohmann::json& value) {
  if (value.is_string()) return yaml_text(value.get_ref<const std::string&>());
  if (value.is_number_float()) {
    std::string text = fmt::format("{}", value.get<double>());  // the shortest text with this value
    const std::size_t e = text.find('e');
    if (e != std::string::npos && text.find('.') == std::string::npos)
      text.insert(e, ".0");  // YAML 1.1 reads 1e-05 as text
    return text;
  }
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const nlohmann::json& item : value) items.push_back(yaml_of(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace

bool is_decimal(std::string_view text) {
  try {  // in JSON's notation, which excludes 010, in YAML 1.1 the octal number 8
    return nlohmann::json::parse(text).is_number();
  } catch (const nlohmann::json::parse_error&) {
    return false;
  } catch (const nlohmann::json::out_of_range&) {  // a number that no double can represent
    return true;
  }
}

nlohmann::json number_json(double x) {
  if (x != std::floor(x) || x >= 1e15 || std::signbit(x)) return x;
  return static_cast<std::int64_t>(x);
}

std::string Field::range_text() const {
  const auto [low, high, low_in, high_in] = range;
  if (high == 0x1p64) return "0 to 2^64 - 1";
  if (high == Range().high) return fmt::format("{}{}", low_in ? "at least " : "above ", low);
  return fmt::format("{}{} to {}{}", low_in ? "" : "above ", low, high_in ? "" : "below ", high);
}

nlohmann::json Field::read(const YamlNode& node) const {
  switch (kind) {
    case FieldKind::integer:
    case FieldKind::number: {
      if (std::ranges::find(choices, node.text) != choices.end()) return node.text;
      const bool integer = kind == FieldKind::integer;
      std::vector<std::string> expected = choices;
      expected.emplace_back(integer ? "a whole number" : "a number");
      const std::string what = either(expected);
      return in_range(integer ? read_integer(node, what) : read_number(node, what), *this, node);
    }
    case FieldKind::boolean:
      if (!is_bare(node) || (node.text != "true" && node.text != "false"))
        refuse(node, "true or false");
      return node.text == "true";
    case FieldKind::text:
      return read_text(node);
    case FieldKind::files:
      return read_files(node, type);
    case FieldKind::choice:
      return read_choice(node, *this);
    case FieldKind::pair:
    case FieldKind::integers:
      return read_numbers(node, *this);
  }
  return {};
}

std::string Field::print(const Config& config) const { return yaml_of(get(config)); }

std::vector<std::string> named_files(const Config& config) {
  std::vector<std::string> paths = config.plugins;
  for (const Field& field : fields()) {
    const nlohmann::json value = field.get(config);
    if (field.kind == FieldKind::text && field.key != "name")
      paths.push_back(value.get<std::string>());
    if (field.kind == FieldKind::files)
      for (const nlohmann::json& path : value) paths.push_back(path.get<std::string>());
  }
  std::erase(paths, "");
  return paths;
}

}  // namespace heed
