#include "train/course/limited_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/io/files.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): declared only with _GNU_SOURCE

namespace heed::course {
namespace {

constexpr std::size_t max_text = std::size_t{1} << 20;
constexpr rlim_t max_file = rlim_t{1} << 30;

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0)
    throw Error(Exit::io, "cannot create a pipe: {}", std::generic_category().message(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void limit(decltype(RLIMIT_AS) what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(what, &both);
}

/// Sets the limits of this process, the new child. Calls only functions that are safe after fork.
void apply(const ProcessLimits& limits) {
  const auto seconds = static_cast<rlim_t>(std::ceil(limits.processor_seconds));
  const rlimit processor{seconds, seconds + 1};  // SIGXCPU, then SIGKILL
  ::setrlimit(RLIMIT_CPU, &processor);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, max_file);
  if (limits.bytes > 0) limit(RLIMIT_AS, limits.bytes);
}

/// The environment of the program: this one's, with one thread for BLAS, whose threads would reserve
/// memory.
std::vector<char*> environment() {
  static std::string one_thread = "OPENBLAS_NUM_THREADS=1";
  std::vector<char*> variables{one_thread.data()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "OPENBLAS_NUM_THREADS=", 21) != 0) variables.push_back(*variable);
  variables.push_back(nullptr);
  return variables;
}

[[noreturn]] void become(const std::vector<char*>& argv, const std::vector<char*>& variables,
                         const std::array<int, 3>& ends, const ProcessLimits& limits) {
  ::setpgid(0, 0);
  // Copies above the standard numbers first, so that no dup2 closes a descriptor that is still needed.
  std::array<int, 3> copies{};
  for (std::size_t i = 0; i < ends.size(); ++i) copies[i] = ::fcntl(ends[i], F_DUPFD_CLOEXEC, 10);
  ::dup2(copies[0], STDIN_FILENO);
  ::dup2(copies[1], STDOUT_FILENO);
  ::dup2(copies[1], STDERR_FILENO);
  ::dup2(copies[2], report_descriptor);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  apply(limits);
  ::execvpe(argv[0], argv.data(), variables.data());
  ::_exit(127);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Appends what the pipe holds to `text`; bytes beyond the greatest length are discarded.
void drain(int descriptor, std::string& text) {
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t size =
        uninterrupted([&] { return ::read(descriptor, piece.data(), piece.size()); });
    if (size <= 0) return;
    if (text.size() < max_text) text.append(piece.data(), static_cast<std::size_t>(size));
  }
}

/// Collects output until the program ends or the clock's limit is reached, when it is killed.
/// Returns its wait status.
int follow(pid_t child, const Pipe& errors, const Pipe& report, double seconds,
           LimitedResult& result) {
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  rusage used{};
  for (bool running = true; running;) {
    std::array<pollfd, 2> ready{pollfd{errors.read.get(), POLLIN, 0},
                                pollfd{report.read.get(), POLLIN, 0}};
    ::poll(ready.data(), ready.size(), 5);
    const bool closed = ((ready[0].revents | ready[1].revents) & POLLHUP) != 0;
    if (closed && ((ready[0].revents | ready[1].revents) & POLLIN) == 0) ::usleep(1000);
    running = ::wait4(child, &status, WNOHANG, &used) == 0;
    if (running && seconds_since(start) > seconds) {
      result.out_of_time = true;
      ::kill(-child, SIGKILL);
      uninterrupted([&] { return ::wait4(child, &status, 0, &used); });
      running = false;
    }
    drain(errors.read.get(), result.errors);
    drain(report.read.get(), result.report);
  }
  ::kill(-child, SIGKILL);  // what it has left running
  result.seconds = seconds_since(start);
  const auto in_seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  result.processor_seconds = in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
  return status;
}

}  // namespace

LimitedResult run_limited(const std::vector<std::string>& arguments, const std::string& input,
                          const ProcessLimits& limits) {
  Pipe in = make_pipe(), errors = make_pipe(), report = make_pipe();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> variables = environment();
  const pid_t child = ::fork();
  if (child < 0)
    throw Error(Exit::failed, "cannot run {}: {}", arguments.front(),
                std::generic_category().message(errno));
  if (child == 0)
    become(argv, variables, {in.read.get(), errors.write.get(), report.write.get()}, limits);
  ::setpgid(child, child);  // in both processes: whichever runs first
  in.read = FileDescriptor();
  errors.write = FileDescriptor();
  report.write = FileDescriptor();
  // The input is shorter than a pipe holds, so the write does not wait for the program.
  write_all(in.write.get(), as_bytes(input), "the program's input");
  in.write = FileDescriptor();
  for (const int end : {errors.read.get(), report.read.get()}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  LimitedResult result;
  const int status = follow(child, errors, report, limits.seconds, result);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (result.signal == SIGXCPU) result.out_of_time = true;
  if (result.signal == SIGKILL && result.processor_seconds >= std::ceil(limits.processor_seconds))
    result.out_of_time = true;
  if (result.signal == 0 && result.status == 127 && result.errors.empty())
    throw Error(Exit::failed, "cannot run {}: is it installed?", arguments.front());
  return result;
}

}  // namespace heed::course
