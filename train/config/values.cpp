#include "train/config/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "autograd/base/message_text.h"

namespace heed {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes a run of digits off the front; how many.
std::size_t take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

/// Takes -?(0|[1-9][0-9]*) off the front: YAML 1.1 would read 010 as octal and 1_000 as 1000, so
/// neither counts as a number here.
bool take_whole(std::string_view& text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool leading_zero = text.starts_with('0');
  const std::size_t digits = take_digits(text);
  return digits == 1 || (digits > 1 && !leading_zero);
}

bool is_bare(const YamlNode& node) { return node.kind == YamlNode::Kind::scalar && !node.quoted; }

std::string out_of_range(const YamlNode& node, const std::string& range) {
  return fmt::format("{} is out of range (allowed: {})", shown(node.text), range);
}

/// The text's value, to the end; nothing where it does not fit into a T.
template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
Read<T> read_digits(const YamlNode& node, const Range<T>& range) {
  const auto not_whole = [&] { return Read<T>{std::nullopt, expected("a whole number", node)}; };
  if (!is_bare(node) || !is_decimal(node.text)) return not_whole();
  std::optional<T> value;
  if (node.text.find_first_of(".eE") == std::string::npos) {
    value = parse<T>(node.text);
  } else {
    const std::optional<double> x = parse<double>(node.text);
    if (x && *x != std::floor(*x)) return not_whole();
    constexpr double exact = 9007199254740992;  // 2^53: doubles hold all whole numbers up to here
    const double low = std::numeric_limits<T>::is_signed ? -exact : 0.0;
    if (x && *x >= low && *x <= exact) value = static_cast<T>(*x);
  }
  if (!value || !range.holds(*value)) return {std::nullopt, out_of_range(node, words(range))};
  return {*value, ""};
}

}  // namespace

bool is_decimal(std::string_view text) {
  if (!take_whole(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  return text.empty();
}

std::string words(const Range<std::int64_t>& range) {
  return fmt::format("{} to {}", range.low, range.high);
}

std::string words(const Range<std::uint64_t>&) { return "0 to 2^64 - 1"; }

std::string words(const Range<double>& range) {
  if (range.high == Range<double>().high)
    return fmt::format("{}{}", range.low_in ? "at least " : "above ", range.low);
  return fmt::format("{}{} to {}{}", range.low_in ? "" : "above ", range.low,
                     range.high_in ? "" : "below ", range.high);
}

std::string expected(std::string_view what, const YamlNode& node) {
  using Kind = YamlNode::Kind;
  if (node.kind == Kind::scalar) {
    return fmt::format("expected {}, got {}\"{}\"", what, node.quoted ? "the quoted text " : "",
                       shown(node.text));
  }
  return fmt::format("expected {}, got {}", what,
                     node.kind == Kind::null   ? "nothing"
                     : node.kind == Kind::list ? "a list"
                                               : "keys and values");
}

Read<std::int64_t> read_whole(const YamlNode& node, const Range<std::int64_t>& range) {
  return read_digits(node, range);
}

Read<std::uint64_t> read_whole(const YamlNode& node, const Range<std::uint64_t>& range) {
  return read_digits(node, range);
}

Read<double> read_number(const YamlNode& node, const Range<double>& range) {
  if (!is_bare(node) || !is_decimal(node.text)) {
    return {std::nullopt, expected("a number", node)};
  }
  const std::optional<double> value = parse<double>(node.text);
  if (!value) return {std::nullopt, shown(node.text) + " is too large or too small"};
  if (!range.holds(*value)) return {std::nullopt, out_of_range(node, words(range))};
  return {*value, ""};
}

Read<bool> read_truth(const YamlNode& node) {
  if (is_bare(node) && (node.text == "true" || node.text == "false")) {
    return {node.text == "true", ""};
  }
  return {std::nullopt, expected("true or false", node)};
}

Read<std::string> read_text(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar) return {std::nullopt, expected("text", node)};
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(node.text, is_control)) {
    return {std::nullopt, expected("one line without control characters", node)};
  }
  return {node.text, ""};
}

Read<std::size_t> read_choice(const YamlNode& node, const std::vector<std::string>& choices) {
  if (node.kind == YamlNode::Kind::scalar) {
    const auto found = std::ranges::find(choices, node.text);
    if (found != choices.end()) return {static_cast<std::size_t>(found - choices.begin()), ""};
  }
  std::string message = expected(fmt::format("one of {}", fmt::join(choices, ", ")), node);
  const std::string near = nearest(node.text, choices);
  if (!near.empty()) message += " (did you mean " + near + "?)";
  return {std::nullopt, message};
}

std::string print_files(const std::vector<std::string>& files) {
  std::vector<std::string> texts;
  texts.reserve(files.size());
  for (const std::string& file : files) texts.push_back(yaml_text(file));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::optional<Complaint> read_files(const YamlNode& node, std::vector<std::string>& files) {
  const bool one = node.kind == YamlNode::Kind::scalar;
  if (!one && node.kind != YamlNode::Kind::list) {
    return Complaint{node.place, expected("a file or a list of files", node)};
  }
  std::vector<std::string> names;
  const auto take = [&names](const YamlNode& item) -> std::optional<Complaint> {
    auto [name, complaint] = read_text(item);
    if (!name) return Complaint{item.place, complaint};
    if (name->empty()) return Complaint{item.place, "a file's name is empty"};
    names.push_back(std::move(*name));
    return std::nullopt;
  };
  if (one) {
    if (auto complaint = take(node)) return complaint;
  }
  for (const YamlNode& item : node.items) {
    if (auto complaint = take(item)) return complaint;
  }
  files = std::move(names);
  return std::nullopt;
}

std::optional<Complaint> read_pair(const YamlNode& node, const Range<double>& range,
                                   std::array<double, 2>& pair) {
  if (node.kind != YamlNode::Kind::list || node.items.size() != 2) {
    return Complaint{node.place,
                     node.kind == YamlNode::Kind::list
                         ? fmt::format("expected two numbers, got a list of {}", node.items.size())
                         : expected("two numbers, as in [0.9, 0.98]", node)};
  }
  std::array<double, 2> values{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [value, complaint] = read_number(node.items[i], range);
    if (!value) return Complaint{node.items[i].place, complaint};
    values[i] = *value;
  }
  pair = values;
  return std::nullopt;
}

}  // namespace heed
