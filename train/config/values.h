#pragma once
/// From YAML to C++ and back for each type that a key may have. Used by the field table alone.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "autograd/base/enum_names.h"
#include "train/config/fields.h"

namespace heed {

/// Bounds of a number.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
  bool low_in = true;   ///< low itself is allowed
  bool high_in = true;  ///< likewise

  bool holds(T x) const {
    return (low_in ? x >= low : x > low) && (high_in ? x <= high : x < high);
  }
};

/// "1 to 8"; of numbers also "at least 0", "above 0", "0 to below 1", ... Each has a lower bound.
std::string words(const Range<std::int64_t>& range);
std::string words(const Range<std::uint64_t>& range);
std::string words(const Range<double>& range);

// Each returns the value or a complaint.
template <class T>
using Read = std::pair<std::optional<T>, std::string>;

/// A whole number however it is written: 10000, 1e4, 1.0e4. The value is exact.
Read<std::int64_t> read_whole(const YamlNode& node, const Range<std::int64_t>& range);
Read<std::uint64_t> read_whole(const YamlNode& node, const Range<std::uint64_t>& range);
Read<double> read_number(const YamlNode& node, const Range<double>& range);
Read<bool> read_truth(const YamlNode& node);
Read<std::string> read_text(const YamlNode& node);
/// Which of the choices.
Read<std::size_t> read_choice(const YamlNode& node, const std::vector<std::string>& choices);

/// `expected a whole number, got "many"`
std::string expected(std::string_view what, const YamlNode& node);

/// Plain decimal, as is_decimal and read_number take it: 5, 0.5, 1e-3.
bool is_decimal(std::string_view text);

std::string print_files(const std::vector<std::string>& files);
std::optional<Complaint> read_files(const YamlNode& node, std::vector<std::string>& files);
std::optional<Complaint> read_pair(const YamlNode& node, const Range<double>& range,
                                   std::array<double, 2>& pair);

// ---- rows of the table ---------------------------------------------------------------------
// `get` turns a Config (const or not) into a reference to the member.

/// A row whose value `read` makes of a node and `print` of the member.
template <class Get, class Reader, class Printer>
Field row(std::string key, Get get, FieldKind kind, std::string type, std::string help, Reader read,
          Printer print) {
  Field field{
      .key = std::move(key), .help = std::move(help), .kind = kind, .type = std::move(type)};
  field.read = [=](Config& config, const YamlNode& node) -> std::optional<Complaint> {
    auto [value, complaint] = read(node);
    if (!value) return Complaint{node.place, std::move(complaint)};
    get(config) = std::move(*value);
    return std::nullopt;
  };
  field.print = [=](const Config& config) { return print(get(config)); };
  return field;
}

template <class T>
Bounds bounds_of(const Range<T>& range) {
  const auto high = static_cast<double>(range.high);
  return {static_cast<double>(range.low), high, range.low_in, range.high_in && high < 0x1p64};
}

template <class T, class Get>
Field whole(std::string key, Get get, Range<T> range, std::string help) {
  Field field = row(
      std::move(key), get, FieldKind::whole, "whole number, " + words(range), std::move(help),
      [=](const YamlNode& node) { return read_whole(node, range); },
      [](T value) { return fmt::format("{}", value); });
  field.bounds = bounds_of(range);
  return field;
}

/// A whole number, or a word for 0.
template <class Get>
Field whole_or(std::string key, Get get, const std::string& word, Range<std::int64_t> range,
               std::string help) {
  const auto read = [=](const YamlNode& node) -> Read<std::int64_t> {
    if (node.kind == YamlNode::Kind::scalar && node.text == word) return {0, ""};
    auto value = read_whole(node, range);
    if (value.second.starts_with("expected"))
      value.second = expected(word + " or a whole number", node);
    return value;
  };
  Field field =
      row(std::move(key), get, FieldKind::whole, word + ", or a whole number, " + words(range),
          std::move(help), read,
          [=](std::int64_t value) { return value == 0 ? word : fmt::format("{}", value); });
  field.bounds = bounds_of(range);
  field.choices = {word};
  return field;
}

template <class Get>
Field number(std::string key, Get get, Range<double> range, std::string help) {
  Field field = row(
      std::move(key), get, FieldKind::number, "number, " + words(range), std::move(help),
      [=](const YamlNode& node) { return read_number(node, range); },
      [](double value) { return fmt::format("{}", value); });  // the shortest that reads back
  field.bounds = bounds_of(range);
  return field;
}

template <class Get>
Field truth(std::string key, Get get, std::string help) {
  return row(std::move(key), get, FieldKind::truth, "true or false", std::move(help), read_truth,
             [](bool value) { return std::string(value ? "true" : "false"); });
}

template <class Get>
Field text(std::string key, Get get, std::string type, std::string help) {
  return row(std::move(key), get, FieldKind::text, std::move(type), std::move(help), read_text,
             yaml_text);
}

template <class Get>
Field files(std::string key, Get get, std::string help) {
  Field field{.key = std::move(key),
              .help = std::move(help),
              .kind = FieldKind::files,
              .type = "a file or a list of files"};
  field.read = [=](Config& config, const YamlNode& node) { return read_files(node, get(config)); };
  field.print = [=](const Config& config) { return print_files(get(config)); };
  return field;
}

/// The same for names that are not files.
template <class Get>
Field names(std::string key, Get get, std::string help) {
  Field field = files(std::move(key), get, std::move(help));
  field.type = "a name or a list of names";
  return field;
}

/// The names of an enum's values, or of the first `most` of them; an optional one may be none.
template <class E>
struct Choices {
  static E value(std::size_t i) { return static_cast<E>(i); }
  static std::size_t index(E e) { return static_cast<std::size_t>(e); }
  static std::vector<std::string> names() {
    const auto names = names_of(E{});
    return {names.begin(), names.end()};
  }
};
template <class E>
struct Choices<std::optional<E>> {
  static std::optional<E> value(std::size_t i) {
    return i == 0 ? std::nullopt : std::optional(Choices<E>::value(i - 1));
  }
  static std::size_t index(std::optional<E> e) { return e ? Choices<E>::index(*e) + 1 : 0; }
  static std::vector<std::string> names() {
    std::vector<std::string> names = Choices<E>::names();
    names.insert(names.begin(), "none");
    return names;
  }
};

template <class Get>
Field choice(std::string key, Get get, std::string help, std::size_t most = 1000) {
  using E = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  std::vector<std::string> names = Choices<E>::names();
  names.resize(std::min(most, names.size()));
  const auto read = [names](const YamlNode& node) -> Read<E> {
    auto [index, complaint] = read_choice(node, names);
    if (!index) return {std::nullopt, std::move(complaint)};
    return {Choices<E>::value(*index), ""};
  };
  Field field = row(std::move(key), get, FieldKind::choice,
                    fmt::format("{}", fmt::join(names, " | ")), std::move(help), read,
                    [names](const E& value) { return names.at(Choices<E>::index(value)); });
  field.choices = names;
  return field;
}

template <class Get>
Field pair(std::string key, Get get, Range<double> range, std::string help) {
  Field field{.key = std::move(key),
              .help = std::move(help),
              .kind = FieldKind::pair,
              .type = "two numbers, each " + words(range),
              .bounds = bounds_of(range)};
  field.read = [=](Config& config, const YamlNode& node) {
    return read_pair(node, range, get(config));
  };
  field.print = [=](const Config& config) {
    return fmt::format("[{}, {}]", get(config)[0], get(config)[1]);
  };
  return field;
}

}  // namespace heed
