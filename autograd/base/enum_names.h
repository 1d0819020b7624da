#pragma once
/// The names of an enum's values, declared directly below the enum:
///
///   enum class NormKind { layer, rms };
///   constexpr auto names_of(NormKind) { return enum_names<NormKind>("layer", "rms"); }
///
/// A value without a name, or a name without a value, does not compile. Values are numbered from 0.
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace heed {

/// True if `value` is one of its enum's enumerators. Compilers print enumerators by name, as in
/// `[with auto value = heed::NormKind::rms]`, and other values as a cast, `(heed::NormKind)2`.
template <auto value>
consteval bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return text[text.rfind("value = ") + 8] != '(';
}

/// The names of E's values in order; the last `unnamed` values have none.
template <class E, std::size_t unnamed = 0, class... Texts>
constexpr auto enum_names(const Texts&... names) {
  constexpr std::size_t count = sizeof...(names) + unnamed;
  static_assert(
      is_enumerator<static_cast<E>(count - 1)>() && !is_enumerator<static_cast<E>(count)>(),
      "expected exactly one name for each value of the enum");
  return std::array<std::string_view, sizeof...(names)>{names...};
}

/// The names of E's values, from a table with a row for each value, in order.
template <class E, class Row, std::size_t rows>
constexpr auto table_names(const std::array<Row, rows>& table) {
  return std::apply([](const auto&... row) { return enum_names<E>(row.name...); }, table);
}

template <class E>
constexpr std::string_view name_of(E value) {
  return names_of(value).at(static_cast<std::size_t>(value));
}

}  // namespace heed
