#pragma once
/// What the library of a compiled check offers the program that loads it. tests/course/check.h
/// defines the function, `heed course check` calls it in a child process.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heed::course {

/// One case of a check. `run` returns one sentence that says what is wrong, or "" if the case
/// passes. `key` selects shapes and values: 0 the usual ones, any other number those of the key.
struct Case {
  std::string stage;  ///< values, gradients, properties or budgets
  std::string name;
  std::function<std::string(std::uint64_t key)> run;
};

/// Appends the cases of the library, in the order in which they run.
using CasesFunction = void (*)(std::vector<Case>& cases);
inline constexpr const char* cases_function = "heed_course_cases";

}  // namespace heed::course
