// A child process finds the step that would end the program.
#include "autograd/gradcheck/child_process.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "autograd/base/sanitizers.h"

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

BOOST_AUTO_TEST_CASE(faults_of_the_processor_and_abort_are_found) {
  volatile int one = 1, zero = 0;
  volatile int* nowhere = nullptr;
  const auto signal_of = [](const auto& fault) {
    const auto crash = find_crash(1, [&](std::size_t) { fault(); });
    return crash ? crash->signal : 0;
  };
  if constexpr (!address_sanitizer && !thread_sanitizer) {  // they end the process by themselves
#if defined(__x86_64__)                                     // other processors compute 0
    BOOST_TEST(signal_of([&] { one = one / zero; }) == SIGFPE);
#endif
    BOOST_TEST(signal_of([&] { *nowhere = 1; }) == SIGSEGV);
  }
  BOOST_TEST(signal_of([] { std::abort(); }) == SIGABRT);
}

BOOST_AUTO_TEST_CASE(endless_step_and_exit_end_the_child_without_a_crash) {
  const auto began = std::chrono::steady_clock::now();
  volatile bool endless = true;
  BOOST_TEST(!find_crash(1, [&](std::size_t) {
                while (endless) {
                }
              }).has_value());
  BOOST_TEST((std::chrono::steady_clock::now() - began >= std::chrono::seconds(1)));
  BOOST_TEST(!find_crash(1, [](std::size_t) { ::_exit(0); }).has_value());
}

BOOST_AUTO_TEST_CASE(steps_that_end_and_a_child_that_ends_by_itself_are_no_crash) {
  BOOST_TEST(!find_crash(3, [](std::size_t) {}).has_value());
  BOOST_TEST(!find_crash(0, [](std::size_t) { std::raise(SIGFPE); }).has_value());
  BOOST_TEST(!find_crash(2, [](std::size_t) { ::_exit(3); }).has_value());  // as sanitizers do
  BOOST_TEST(!find_crash(2, [](std::size_t) { std::raise(SIGALRM); }).has_value());  // too slow
}

BOOST_AUTO_TEST_SUITE_END()
