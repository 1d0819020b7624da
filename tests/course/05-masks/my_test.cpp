// Your own test of chapter 5: `heed course test 5` runs it on the solution, where it must return true,
// and on faulty solutions, where it should return false, throw or crash.
#include <cmath>

#include "exercise.h"

bool my_test() {
  const heed::Array mask = chapter5::causal(3);
  return mask.at({0, 0}) == 0 && mask.at({0, 2}) == chapter5::hidden;
}
