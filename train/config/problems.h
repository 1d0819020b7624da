#pragma once
/// The errors in a config, collected while it is read and reported together; and the warnings.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The position of a value. Source 0 is the file; source k is the k-th override of the command line.
struct Place {
  int source = 0;
  int line = 1;    ///< from 1
  int column = 1;  ///< from 1, in characters

  friend auto operator<=>(const Place&, const Place&) = default;  // NOLINT(modernize-use-nullptr)
};

/// What is wrong with a value, and where (in a list: at the item).
struct ValueError {
  Place place;
  std::string message;
};

class Problems {
 public:
  Problems(std::string_view file, std::span<const std::string> overrides);

  /// `key` is the dotted path that the message is about; empty if there is none.
  void add(Place place, std::string key, std::string message);

  /// For what is allowed but probably a mistake.
  void warn(Place place, std::string key, std::string message);

  /// Marks a key as known to be wrong without a message of its own (a misspelling was reported).
  void mark_invalid(std::string key);

  /// True if a problem is known with this key, with a section it is in, or with a key in it.
  bool about(std::string_view key) const;

  bool any() const { return !list_.empty(); }
  std::vector<std::string> warnings() const;  ///< one line each

  /// True if further problems would only be counted.
  bool full() const { return list_.size() >= max_problems; }

  /// `exp.yaml:17:5`, or `command line: train.steps=x`.
  std::string show(Place place) const;

  /// Throws Error(Exit::usage) with one line for each problem, in the order of their places. Returns
  /// if there are none.
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
  std::size_t omitted_ = 0;  ///< problems beyond `max_problems` are only counted
};

// ---- former names, for one release ---------------------------------------------------------

using Complaint [[deprecated("use ValueError")]] = ValueError;

}  // namespace heed
