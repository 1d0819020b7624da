#pragma once
/// Collects the errors and warnings of a config while it is read; the errors are reported together.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The position of a value. Source 0 is the file; source k is the k-th override on the command
/// line.
struct Place {
  int source = 0;
  int line = 1;    ///< counted from 1
  int column = 1;  ///< counted from 1, in characters

  friend auto operator<=>(const Place&, const Place&) = default;  // NOLINT(modernize-use-nullptr)
};

/// An error in a value, with its place (in a list: that of the item).
struct ValueError {
  Place place;
  std::string message;
};

class Problems {
 public:
  Problems(std::string_view file, std::span<const std::string> overrides);

  /// Adds an error. `key` is the dotted path of the key that it concerns; empty if there is none.
  void add(Place place, std::string key, std::string message);

  /// Adds a warning: the value is allowed but probably a mistake.
  void warn(Place place, std::string key, std::string message);

  /// Marks a key as wrong without adding a message, for example because a misspelling of the key
  /// was reported.
  void mark_invalid(std::string key);

  /// True if an error was added or mark_invalid called for this key, for a section that contains it
  /// or for a key in it.
  bool about(std::string_view key) const;

  bool any() const { return !list_.empty(); }
  std::vector<std::string> warnings() const;  ///< one line each

  /// True if further errors are only counted.
  bool full() const { return list_.size() >= max_problems; }

  /// The place as text: `exp.yaml:17:5`, or `command line: train.steps=x`.
  std::string show(Place place) const;

  /// Throws Error(Exit::usage) with one line for each of the first `max_problems` errors, in the
  /// order of their places, and the number of the others. Does nothing if there are no errors.
  void raise() const;

 private:
  struct Problem {
    Place place;
    std::string key;
    std::string message;
  };
  static constexpr std::size_t max_problems = 100;

  std::string line(const Problem& problem) const;

  std::string file_;
  std::vector<std::string> overrides_;
  std::vector<Problem> list_, warnings_;
  std::vector<std::string> invalid_;
  std::size_t omitted_ = 0;  ///< number of errors beyond `max_problems`
};

// ---- former names, for one release ---------------------------------------------------------

using Complaint [[deprecated("use ValueError")]] = ValueError;

}  // namespace heed
