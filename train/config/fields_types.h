#pragma once
/// From YAML to C++ and back for each type that a key may have. Used by the field table alone.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

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
std::string words(const Range<double>& range);

// Each returns the value or a complaint.
template <class T>
using Read = std::pair<std::optional<T>, std::string>;

Read<std::int64_t> read_whole(const YamlNode& node, const Range<std::int64_t>& range);
Read<std::uint64_t> read_seed(const YamlNode& node);
Read<double> read_number(const YamlNode& node, const Range<double>& range);
Read<bool> read_truth(const YamlNode& node);
Read<std::string> read_text(const YamlNode& node);
/// Which of the choices.
Read<std::size_t> read_choice(const YamlNode& node, const std::vector<std::string>& choices);

/// `expected a whole number, got "many"`
std::string expected(std::string_view what, const YamlNode& node);

/// The shortest decimal number that reads back as x.
std::string print_number(double x);
std::string print_files(const std::vector<std::string>& files);
std::optional<Complaint> read_files(const YamlNode& node, std::vector<std::string>& files);
std::optional<Complaint> read_pair(const YamlNode& node, const Range<double>& range,
                                   std::array<double, 2>& pair);

// ---- rows of the table ---------------------------------------------------------------------
// `get` turns a Config (const or not) into a reference to the member.

/// Stores what was read, or says what is wrong.
template <class T, class Member>
std::optional<Complaint> store(const Read<T>& read, const YamlNode& node, Member& member) {
  if (!read.first) return Complaint{node.place, read.second};
  member = static_cast<Member>(*read.first);
  return std::nullopt;
}

template <class Get>
Field whole(std::string key, Get get, Range<std::int64_t> range, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::whole,
          "whole number, " + words(range),
          {},
          static_cast<double>(range.low),
          static_cast<double>(range.high),
          [=](Config& config, const YamlNode& node) {
            return store(read_whole(node, range), node, get(config));
          },
          [=](const Config& config) { return fmt::format("{}", get(config)); }};
}

template <class Get>
Field number(std::string key, Get get, Range<double> range, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::number,
          "number, " + words(range),
          {},
          range.low,
          range.high,
          [=](Config& config, const YamlNode& node) {
            return store(read_number(node, range), node, get(config));
          },
          [=](const Config& config) { return print_number(get(config)); }};
}

template <class Get>
Field truth(std::string key, Get get, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::truth,
          "true or false",
          {},
          0,
          0,
          [=](Config& config, const YamlNode& node) {
            return store(read_truth(node), node, get(config));
          },
          [=](const Config& config) { return std::string(get(config) ? "true" : "false"); }};
}

template <class Get>
Field text(std::string key, Get get, std::string type, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::text,
          std::move(type),
          {},
          0,
          0,
          [=](Config& config, const YamlNode& node) {
            return store(read_text(node), node, get(config));
          },
          [=](const Config& config) { return yaml_text(get(config)); }};
}

template <class Get>
Field files(std::string key, Get get, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::files,
          "a file or a list of files",
          {},
          0,
          0,
          [=](Config& config, const YamlNode& node) { return read_files(node, get(config)); },
          [=](const Config& config) { return print_files(get(config)); }};
}

/// The same of names that are no files.
template <class Get>
Field names(std::string key, Get get, std::string help) {
  Field field = files(std::move(key), get, std::move(help));
  field.type = "a name or a list of names";
  return field;
}

/// `choices` name the values 0, 1, 2, ... of an enum in its own order.
template <class Get>
Field choice(std::string key, Get get, std::vector<std::string> choices, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::choice,
          fmt::format("{}", fmt::join(choices, " | ")),
          choices,
          0,
          0,
          [=](Config& config, const YamlNode& node) {
            return store(read_choice(node, choices), node, get(config));
          },
          [=](const Config& config) { return choices.at(static_cast<std::size_t>(get(config))); }};
}

/// Likewise for an optional enum; the first choice means that it is not set.
template <class Get>
Field optional_choice(std::string key, Get get, std::vector<std::string> choices,
                      std::string help) {
  const auto read = [=](Config& config, const YamlNode& node) -> std::optional<Complaint> {
    const auto [index, complaint] = read_choice(node, choices);
    if (!index) return Complaint{node.place, complaint};
    auto& member = get(config);
    member.reset();
    if (*index > 0) member = static_cast<std::remove_reference_t<decltype(*member)>>(*index - 1);
    return std::nullopt;
  };
  const auto print = [=](const Config& config) {
    const auto& member = get(config);
    return choices.at(member ? static_cast<std::size_t>(*member) + 1 : 0);
  };
  return {std::move(key),
          std::move(help),
          FieldKind::choice,
          fmt::format("{}", fmt::join(choices, " | ")),
          choices,
          0,
          0,
          read,
          print};
}

template <class Get>
Field pair(std::string key, Get get, Range<double> range, std::string help) {
  return {std::move(key),
          std::move(help),
          FieldKind::pair,
          "two numbers, each " + words(range),
          {},
          range.low,
          range.high,
          [=](Config& config, const YamlNode& node) { return read_pair(node, range, get(config)); },
          [=](const Config& config) {
            return fmt::format("[{}, {}]", print_number(get(config)[0]),
                               print_number(get(config)[1]));
          }};
}

}  // namespace heed
