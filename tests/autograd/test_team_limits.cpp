// Threads that the system does not permit.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "autograd/base/error.h"
#include "autograd/base/sanitizers.h"
#include "autograd/base/team.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(team_limits)

BOOST_AUTO_TEST_CASE(threads_that_the_system_refuses_are_an_error) {
  if constexpr (address_sanitizer || thread_sanitizer) return;  // they need terabytes of addresses
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{std::size_t{4} << 30, std::size_t{4} << 30};  // 1024 stacks need 8 GiB
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    try {
      const Team team(1024);
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool good =
          error.code == Exit::io &&
          message.starts_with("1024 threads are too many for this system, which runs ");
      ::_exit(good ? 0 : 3);
    }
    ::_exit(4);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
