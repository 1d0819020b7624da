// Your own test of chapter 4: `heed course test 4` runs it on the solution, where it must return true,
// and on faulty solutions, where it should return false, throw or crash.
#include <cmath>

#include "exercise.h"

bool my_test() {
  const heed::Array x({{1, 2, 3, 4}, {5, 6, 7, 8}});
  const heed::Array y = chapter4::split_values(x, 2);
  return y.shape() == heed::Shape({2, 2, 2}) && y.at({0, 0, 0}) == 1 && y.at({1, 1, 1}) == 8;
}
