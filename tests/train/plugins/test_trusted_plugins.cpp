/// The user's list of trusted plugins. (tests/install/test_plugins.sh tests which libraries the
/// commands load.)
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/temporary_folder.h"
#include "train/config/trusted_plugins.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(trusted_plugins)

namespace {

const std::string sum_a(64, 'a'), sum_b(64, 'b');

/// Sets an environment variable, or removes it (null), until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* const before = std::getenv(name);
    had_value_ = before != nullptr;
    if (had_value_) before_ = before;
    set(value);
  }
  ~Variable() { set(had_value_ ? before_.c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    value != nullptr ? ::setenv(name_.c_str(), value, 1) : ::unsetenv(name_.c_str());
  }
  std::string name_, before_;
  bool had_value_ = false;
};

/// A folder for the state of programs, as XDG_STATE_HOME.
struct StateFolder {
  TemporaryFolder folder;
  Variable variable{"XDG_STATE_HOME", folder.path().c_str()};
  std::filesystem::path list() const { return folder.path() / "heed/trusted"; }
};

bool is_io_error(const Error& error) { return error.code == Exit::io; }

}  // namespace

BOOST_AUTO_TEST_CASE(listed_library_is_trusted_with_its_sum_and_path) {
  const StateFolder state;
  BOOST_TEST(!is_trusted_plugin(sum_a, "/lib/a.so"));
  list_trusted_plugin(sum_a, "/lib/a.so");
  list_trusted_plugin(sum_b, "/lib/b.so");
  BOOST_TEST(is_trusted_plugin(sum_a, "/lib/a.so"));
  BOOST_TEST(is_trusted_plugin(sum_b, "/lib/b.so"));
  BOOST_TEST(!is_trusted_plugin(sum_b, "/lib/a.so"));
  BOOST_TEST(!is_trusted_plugin(sum_a, "/lib/b.so"));
  BOOST_TEST(!is_trusted_plugin(sum_a, "/lib/a.s"));
  BOOST_TEST(!is_trusted_plugin(sum_a.substr(1), "/lib/a.so"));
  BOOST_TEST(read_bytes(state.list()) == sum_a + "  /lib/a.so\n" + sum_b + "  /lib/b.so\n");
}

BOOST_AUTO_TEST_CASE(line_cut_by_a_kill_does_not_affect_the_next) {
  const StateFolder state;
  list_trusted_plugin(sum_a, "/lib/a.so");
  std::ofstream(state.list(), std::ios::app) << sum_b.substr(0, 20);
  BOOST_TEST(!is_trusted_plugin(sum_b, "/lib/b.so"));
  list_trusted_plugin(sum_b, "/lib/b.so");
  BOOST_TEST(is_trusted_plugin(sum_a, "/lib/a.so"));
  BOOST_TEST(is_trusted_plugin(sum_b, "/lib/b.so"));
}

BOOST_AUTO_TEST_CASE(processes_that_write_at_the_same_time_lose_and_repeat_no_line) {
  constexpr int processes = 8, lines = 20;
  const StateFolder state;
  const auto place = [](int p, int i) {
    return "/lib/" + std::to_string(p) + "-" + std::to_string(i) + ".so";
  };
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (int i = 0; i < lines; ++i) {
          list_trusted_plugin(sum_a, place(p, i));
          list_trusted_plugin(sum_b, place(0, i));  // the same line in every process
        }
        std::_Exit(0);
      } catch (const Error&) {
        std::_Exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    BOOST_TEST(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
  }
  std::multiset<std::string> expected, found;
  for (int i = 0; i < lines; ++i) {
    for (int p = 0; p < processes; ++p) expected.insert(sum_a + "  " + place(p, i));
    expected.insert(sum_b + "  " + place(0, i));
  }
  std::ifstream list(state.list());
  for (std::string line; std::getline(list, line);) found.insert(line);
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(list_is_below_home_unless_xdg_state_home_is_an_absolute_path) {
  const TemporaryFolder home;
  const Variable variable("HOME", home.path().c_str());
  for (const char* invalid : {static_cast<const char*>(nullptr), "", "state"}) {
    const Variable state("XDG_STATE_HOME", invalid);
    list_trusted_plugin(sum_a, "/lib/a.so");
    BOOST_TEST(is_trusted_plugin(sum_a, "/lib/a.so"));
    BOOST_TEST(std::filesystem::exists(home.path() / ".local/state/heed/trusted"));
    std::filesystem::remove_all(home.path() / ".local");
  }
}

BOOST_AUTO_TEST_CASE(list_that_cannot_be_written_is_an_error_and_contains_nothing) {
  {
    const Variable state("XDG_STATE_HOME", nullptr), home("HOME", nullptr);
    BOOST_CHECK_EXCEPTION(list_trusted_plugin(sum_a, "/lib/a.so"), Error, is_io_error);
    BOOST_TEST(!is_trusted_plugin(sum_a, "/lib/a.so"));
  }
  const StateFolder state;
  BOOST_CHECK_EXCEPTION(list_trusted_plugin(sum_a, "/lib/a\n.so"), Error, is_io_error);
  std::filesystem::create_directories(state.list().parent_path());
  BOOST_REQUIRE(::mkfifo(state.list().c_str(), 0600) == 0);
  BOOST_TEST(!is_trusted_plugin(sum_a, "/lib/a.so"));
  std::filesystem::remove_all(state.folder.path() / "heed");
  std::ofstream(state.folder.path() / "heed") << "a file";
  BOOST_CHECK_EXCEPTION(list_trusted_plugin(sum_a, "/lib/a.so"), Error, is_io_error);
}

BOOST_AUTO_TEST_SUITE_END()
