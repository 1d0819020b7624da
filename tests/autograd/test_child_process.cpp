// A child process finds the step that would end the program.
#include "autograd/gradcheck/child_process.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <stdexcept>
#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(child_process)

BOOST_AUTO_TEST_CASE(the_first_step_that_a_fault_ends_is_found_and_changes_nothing) {
  int calls = 0;
  for (const int signal : {SIGFPE, SIGSEGV, SIGABRT}) {
    const auto crash = find_crash(5, [&](std::size_t i) {
      ++calls;
      if (i == 1) throw std::runtime_error("ends this step only");
      if (i >= 3) std::raise(signal);
    });
    BOOST_REQUIRE(crash.has_value());
    BOOST_TEST(crash->step == 3u);
    BOOST_TEST(crash->signal == signal);
  }
  BOOST_TEST(calls == 0);
}

BOOST_AUTO_TEST_CASE(steps_that_end_and_a_child_that_ends_by_itself_are_no_crash) {
  BOOST_TEST(!find_crash(3, [](std::size_t) {}).has_value());
  BOOST_TEST(!find_crash(0, [](std::size_t) { std::raise(SIGFPE); }).has_value());
  BOOST_TEST(!find_crash(2, [](std::size_t) { ::_exit(3); }).has_value());  // as sanitizers do
  BOOST_TEST(!find_crash(2, [](std::size_t) { std::raise(SIGALRM); }).has_value());  // too slow
}

BOOST_AUTO_TEST_SUITE_END()
