#include "train/fetch/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "autograd/base/error.h"
#include "autograd/io/files.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): declared only with _GNU_SOURCE

namespace heed {
namespace {

constexpr std::size_t kMinText =
    std::size_t{1} << 16;  // minimum number of bytes kept from the end of a long output

std::string read_to_end(int descriptor) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t size =
        uninterrupted([&] { return ::read(descriptor, piece.data(), piece.size()); });
    if (size <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(size));
    if (text.size() >= 2 * kMinText) text.erase(0, text.size() - kMinText);
  }
}

}  // namespace

std::string ProgramResult::last_line() const {
  const std::string lines = text.substr(0, text.find_last_not_of('\n') + 1);
  return lines.substr(lines.find_last_of("\n\r") + 1);  // npos + 1 is 0
}

ProgramResult run_program(const std::vector<std::string>& arguments, int keep,
                          const std::function<void(int)>& started) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0)
    throw Error(Exit::io, "{}: {}", arguments.front(), std::generic_category().message(errno));
  const FileDescriptor read_end(ends[0]);
  pid_t child = 0;
  {
    const FileDescriptor write_end(ends[1]);
    posix_spawn_file_actions_t streams;
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    const int other = keep == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
    posix_spawn_file_actions_addopen(&streams, other, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&streams, write_end.get(), keep);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (started) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = ::posix_spawnp(&child, argv[0], &streams, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&streams);
    if (error != 0)
      throw Error(Exit::failed, "cannot run {}: {}", arguments.front(),
                  std::generic_category().message(error));
  }
  if (started) started(child);
  ProgramResult result;
  result.text = read_to_end(read_end.get());
  int status = 0;
  if (uninterrupted([&] { return ::waitpid(child, &status, 0); }) < 0) {
    throw Error(Exit::failed, "{}: {}", arguments.front(), std::generic_category().message(errno));
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace heed
