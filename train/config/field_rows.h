#pragma once
/// Makes a row of the field table from a member of Config: its kind, its choices, and the functions
/// that get and set its value. Included by fields.cpp and model_fields.cpp only.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "train/config/fields.h"

namespace heed {

template <class T>
nlohmann::json json_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(name_of(value));
  else if constexpr (std::is_same_v<T, double>)
    return number_json(value);
  else
    return value;
}
template <class E>
nlohmann::json json_of(const std::optional<E>& value) {
  return value ? json_of(*value) : nlohmann::json("none");
}
inline nlohmann::json json_of(const std::array<double, 2>& pair) {
  return {number_json(pair[0]), number_json(pair[1])};
}

template <class T>
void set_from(const nlohmann::json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& names = names_of(T{});
    value = static_cast<T>(std::ranges::find(names, json.get<std::string>()) - names.begin());
  } else {
    value = json.get<T>();
  }
}
template <class E>
void set_from(const nlohmann::json& json, std::optional<E>& value) {
  value.reset();
  if (json != "none") set_from(json, value.emplace());
}

inline FieldKind kind_of(double) { return FieldKind::number; }
inline FieldKind kind_of(bool) { return FieldKind::boolean; }
inline FieldKind kind_of(const std::string&) { return FieldKind::text; }
inline FieldKind kind_of(const std::vector<std::string>&) { return FieldKind::files; }
inline FieldKind kind_of(const std::array<double, 2>&) { return FieldKind::pair; }
inline FieldKind kind_of(const std::vector<std::int64_t>&) { return FieldKind::integers; }
template <class T>
FieldKind kind_of(T) {
  if constexpr (std::is_integral_v<T>) return FieldKind::integer;
  return FieldKind::choice;
}

template <class T>
std::vector<std::string> choices_of(const T&) {
  if constexpr (std::is_enum_v<T>) {
    const auto& names = names_of(T{});
    return {names.begin(), names.end()};
  }
  return {};
}
template <class E>
std::vector<std::string> choices_of(const std::optional<E>&) {
  std::vector<std::string> names = choices_of(E{});
  names.insert(names.begin(), "none");
  return names;
}

/// A row for the member that `member_of` returns; the member's type determines the kind. Because
/// `member_of` is a function pointer, row() is compiled once per type instead of once per key.
template <class T>
Field row(std::string key, T& (*member_of)(Config&), Range range, std::string help) {
  static Config defaults;
  const T& member = member_of(defaults);
  constexpr bool is_open = requires { open_names(T{}); };
  return {
      .key = std::move(key),
      .help = std::move(help),
      .kind = kind_of(member),
      .range = range,
      .choices = choices_of(member),
      .open = is_open,
      .get =
          [=](const Config& config) {  // json_of only reads
            return json_of(std::as_const(member_of(const_cast<Config&>(config))));
          },
      .set = [=](Config& config, const nlohmann::json& json) { set_from(json, member_of(config)); },
  };
}
template <class T>
Field row(std::string key, T& (*member_of)(Config&), std::string help) {
  return row(std::move(key), member_of, Range(), std::move(help));
}

/// The permitted values of a field, in words.
inline std::string type_of(const Field& field) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::number:
      return fmt::format(
          "{}{}{}, {}", fmt::join(field.choices, ", "), field.choices.empty() ? "" : ", or a ",
          field.kind == FieldKind::integer ? "whole number" : "number", field.range_text());
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::text:
      return "text";
    case FieldKind::files:
      return "a file or a list of files";
    case FieldKind::choice:
      return fmt::format("{}{}", fmt::join(field.choices, " | "),
                         field.open ? " | a name from a plugin" : "");
    case FieldKind::pair:
      return "two numbers, each " + field.range_text();
    case FieldKind::integers:
      return "a list of whole numbers, each " + field.range_text();
  }
  return "";
}

// The upper bounds of counts are far above any sensible value. They prevent the overflow of shapes
// and counters.
inline constexpr double million = 1e6, billion = 1e9;
inline constexpr Range steps{0, 1e12}, tokens{1, billion}, sequences{1, million},
    fraction{0.0, 1.0, true, false}, dropout{0.0, 0.99}, positive{.low_in = false}, not_negative;

inline Field& find(std::vector<Field>& table, std::string_view key) {
  return *std::ranges::find(table, key, &Field::key);
}

inline std::vector<std::string> all_but(const Field& field, const std::string& value) {
  std::vector<std::string> rest = field.choices;
  std::erase(rest, value);
  return rest;
}

inline std::string fixed_by_weights(const std::string& part) {
  return fmt::format("a run keeps its {}, because its weights fit no other", part);
}

/// The names of the rows of a table for which `holds`, a predicate or a member, is true.
template <class Rows, class Holds>
std::vector<std::string> names_where(const Rows& rows, const Holds& holds) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (std::invoke(holds, row)) names.emplace_back(row.name);
  return names;
}

/// The meanings of the rows of a table: "a, b: their meaning; c: its meaning". Consecutive rows with
/// equal `help` share it; rows without are left out.
template <class Rows>
std::string meanings_of(const Rows& rows) {
  std::string text;
  std::string_view help;
  for (auto row = std::begin(rows); row != std::end(rows); ++row) {
    if (row->help.empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : row->help == help ? ", " : "; ", row->name);
    help = row->help;
    if (const auto next = std::next(row); next == std::end(rows) || next->help != help)
      text += fmt::format(": {}", help);
  }
  return text;
}

/// The table under construction.
using Table = std::vector<Field>;

/// Restricts each key that rows of a table list as their own, and the keys of each such section, to
/// these values of `chooser`. `section` precedes the keys.
template <class Rows>
void restrict_own_keys(Table& table, const std::string& section, const std::string& chooser,
                       const Rows& rows) {
  for (Field& field : table) {
    const auto reads = [&](const auto& row) {
      return std::ranges::any_of(row.keys, [&](std::string_view key) {
        const std::string own = section + std::string(key);
        return !key.empty() && (field.key == own || field.key.starts_with(own + "."));
      });
    };
    if (std::vector<std::string> names = names_where(rows, reads); !names.empty())
      field.only(chooser, std::move(names));
  }
}

inline void add(Table& table, std::initializer_list<Field> rows) {
  table.insert(table.end(), rows.begin(), rows.end());
}

/// Adds the keys of the section `model` (model_fields.cpp).
void add_model(Table& table);

/// Expands to an accessor of a member of Config.
#define HEED_MEMBER(member)       \
  +[](Config & config) -> auto& { \
    return config.member;         \
  }  // NOLINT(bugprone-macro-parentheses)
/// Expands to a key, which is the member's path in Config, and an accessor of the member.
#define HEED_KEY(member) #member, HEED_MEMBER(member)
/// The same for a member of config.model, which is boxed.
#define HEED_MODEL_KEY(member) "model." #member, HEED_MEMBER(model->member)

}  // namespace heed
