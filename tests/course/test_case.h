#pragma once
/// The one case of a student's own test (`heed course test`): bool my_test() in my_test.cpp.
#include "check.h"

bool my_test();

namespace {
void run_my_test(heed::course::Draw&) {
  heed::course::require(my_test(), "my_test() returns false");
}
}  // namespace

HEED_COURSE_CASES({{"test", "my_test() returns true", run_my_test}})
