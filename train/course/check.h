#pragma once
/// Checks an exercise: compiles the chapter's check with it into a library, which a child process
/// loads and runs.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/course/chapters.h"

namespace heed::course {

enum class Outcome { passed, failed, not_reached };

struct CheckedCase {
  std::string stage;  ///< rules, compile, values, gradients, properties or budgets
  std::string name;
  Outcome outcome = Outcome::not_reached;
  std::string sentence;  ///< what is wrong, if it failed
};

struct CheckResult {
  std::vector<CheckedCase> cases;  ///< in order; the check stops at the first that fails
  std::string details;             ///< the compiler's messages, if it failed
  /// The last 20 lines that the code under test printed within its first MB, escaped and cut to 200
  /// bytes each. They never affect the outcome of a case.
  std::vector<std::string> printed;
  double compile_seconds = 0;    ///< on the clock
  double run_seconds = 0;        ///< on the clock
  double processor_seconds = 0;  ///< of the run

  std::int64_t passed() const;
  bool all_passed() const;
  /// Whether the cases of the chapter are known: the exercise keeps the rules and compiles.
  bool has_run() const;
  const CheckedCase* failure() const;  ///< the case that failed; nullptr if all passed
};

/// The header that a student hands in.
struct Exercise {
  std::string name;  ///< in the compiler's messages
  std::string text;
};
/// Throws Error(bad_input) if the file cannot be read.
Exercise read_exercise(const std::filesystem::path& file);

/// Checks an exercise; `key` selects shapes and values (Case::run). Throws Error only if the check
/// itself cannot run, as without a compiler.
CheckResult check_exercise(const CourseFiles& course, const Chapter& chapter,
                           const Exercise& exercise, std::uint64_t key);

/// Runs a student's test on an exercise. The test is a file that includes exercise.h and defines
/// bool my_test(), which must return true.
CheckResult run_test(const CourseFiles& course, const Chapter& chapter, const Exercise& test,
                     const Exercise& exercise);

/// The job of the child process: loads the library and runs its cases up to the first that fails.
/// Reads a secret word and the key from standard input, and reports on `report_descriptor` in lines
/// that begin with the secret word. Does not return.
[[noreturn]] void run_cases(const std::string& library);

}  // namespace heed::course
