#pragma once
/// Enums that can be extended at run time: their first values are built in, and plugins register
/// further values by name (train/config/plugins.h). An open enum has one list of names and, in each
/// build (real = float or double), a table of its registered values:
///
///   enum class MixerKind : int { attention };        // registered values have no enumerators
///   inline OpenNames& open_names(MixerKind) {        // the program's only list
///     static OpenNames names("mixer", {"attention"});
///     return names;
///   }
///   inline auto names_of(MixerKind kind) { return open_names(kind).all(); }
///   OpenTable<MixerKind, MixerFactory>& mixers();    // defined in a .cpp
///
/// Names must be registered before other threads read them; they are never removed.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/error.h"

namespace heed {

/// Whether the name has the form of a registered name: two or more words joined by dots, as in
/// mine.gate. The dots distinguish registered names from built-in ones. A word consists of ASCII
/// letters, digits and _, and does not begin with a digit.
constexpr bool is_registered_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool starts = true;  // a word starts at this character
  for (const char c : name) {
    if (c == '.' ? starts : !letter(c) && (starts || c < '0' || c > '9')) return false;
    starts = c == '.';
  }
  return !starts && name.find('.') != std::string_view::npos;
}

class OpenNames {
 public:
  /// `what`: the noun for a value in messages, such as "mixer".
  OpenNames(std::string what, std::vector<std::string_view> built_in)
      : what_(std::move(what)), built_in_(built_in.size()), names_(std::move(built_in)) {}

  /// All names in the order of their values. The views remain valid.
  const std::vector<std::string_view>& all() const { return names_; }
  std::size_t built_in() const { return built_in_; }
  const std::string& what() const { return what_; }

  /// The number of the value with this name, which is registered if it is new. Throws
  /// Error(bad_input) if the name does not have the form that is_registered_name describes.
  std::size_t registered(std::string_view name) {
    if (!is_registered_name(name)) {
      throw Error(Exit::bad_input,
                  "{} \"{}\": expected a name of words joined by dots, as in mine.{}", what_, name,
                  what_);
    }
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      names_.push_back(texts_.emplace_back(name));
      ++growth;
      return names_.size() - 1;
    }
    return static_cast<std::size_t>(found - names_.begin());
  }

  /// The number of names registered so far in all enums.
  static inline std::size_t growth = 0;

 private:
  std::string what_;
  std::size_t built_in_;
  std::vector<std::string_view> names_;
  std::deque<std::string> texts_;  ///< storage for the registered names
};

template <class E>
bool is_built_in(E e) {
  return static_cast<std::size_t>(e) < open_names(e).built_in();
}

/// Maps the registered values of E to Values; there is one table for each pair of types. A Value
/// converts to bool: one that is false marks a name without a registered Value.
template <class E, class Value>
class OpenTable {
 public:
  /// Throws Error(bad_input) if the name has the wrong form or is already in this table.
  static void add(std::string_view name, Value value) {
    OpenNames& names = open_names(E{});
    const std::size_t i = names.registered(name) - names.built_in();
    if (values_.size() <= i) values_.resize(i + 1);
    if (values_[i]) throw Error(Exit::bad_input, "{} {} is registered twice", names.what(), name);
    values_[i] = std::move(value);
  }

  /// The Value of a registered enum value. Throws Error(failed) if it is registered only for the
  /// other `real` type.
  static const Value& of(E e) {
    const OpenNames& names = open_names(e);
    const std::size_t i = static_cast<std::size_t>(e) - names.built_in();
    if (i < values_.size() && values_[i]) return values_[i];
    throw Error(Exit::failed,
                "{} {} is registered only for the other number type (float or double)",
                names.what(), names.all().at(static_cast<std::size_t>(e)));
  }

 private:
  static inline std::deque<Value> values_;
};

}  // namespace heed
