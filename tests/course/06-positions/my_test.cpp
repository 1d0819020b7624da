// Your own test of chapter 6: `heed course test 6` runs it on the solution, where it must return true,
// and on faulty solutions, where it should return false, throw or crash.
#include <cmath>

#include "exercise.h"

bool my_test() {
  // Position 0: all angles are 0.
  const heed::Array pe = chapter6::positional_encoding(1, 4);
  return pe.at({0, 0}) == 0 && pe.at({0, 1}) == 1 &&
         std::abs(chapter6::frequency(0, 4) - 1) < 1e-12;
}
