#include "autograd/gradcheck/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

HEED_BEGIN

namespace {

constexpr std::array faults{SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGABRT};
constexpr unsigned allowed_seconds = 3;

/// Removes the handlers of test frameworks and sanitizers, so that a fault ends the child, and
/// limits its time; suppresses its output and core dumps.
void prepare_child() {
  for (const int signal : faults) ::signal(signal, SIG_DFL);
  ::signal(SIGALRM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(allowed_seconds);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (const int sink = ::open("/dev/null", O_WRONLY); sink >= 0) {
    ::dup2(sink, STDOUT_FILENO);
    ::dup2(sink, STDERR_FILENO);
  }
}

}  // namespace

std::optional<Crash> find_crash(std::size_t count, const std::function<void(std::size_t)>& step) {
  void* const shared = ::mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  auto* const current = static_cast<volatile std::size_t*>(shared);
  std::fflush(nullptr);  // so that the child does not write buffered output again
  const pid_t child = ::fork();
  if (child == 0) {
    prepare_child();
    for (std::size_t i = 0; i < count; ++i) {
      *current = i;
      try {
        step(i);
      } catch (...) {  // the caller's process reports it
      }
    }
    ::_exit(0);
  }
  int status = 0;
  pid_t ended = child;
  while (child > 0 && (ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  const std::size_t last = *current;
  ::munmap(shared, sizeof(std::size_t));
  if (child < 0 || ended < 0 || !WIFSIGNALED(status)) return {};
  if (std::ranges::find(faults, WTERMSIG(status)) == faults.end()) return {};
  return Crash{last, WTERMSIG(status)};
}

HEED_END
