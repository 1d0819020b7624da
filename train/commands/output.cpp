#include "train/commands/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "train/run/run_folder.h"

namespace heed {

namespace {

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// An unfinished file. During the lifetime of this object, other processes refuse to write it, and
/// SIGINT, SIGTERM and SIGHUP remove it before they end the process.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& file) {
    // A signal between the creation of the file and the registration of the handlers would leave
    // the file behind.
    const Blocked signals_blocked;
    lock(file);
    path = ::strdup(file.c_str());
    for (std::size_t i = 0; i < ending.size(); ++i) {
      sigaction(ending[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) continue;  // set by nohup or the shell
      struct sigaction action {};
      action.sa_handler = &Unfinished::remove;
      action.sa_flags = SA_RESETHAND;  // a second signal has the default action
      sigaction(ending[i], &action, nullptr);
    }
  }
  ~Unfinished() {
    for (std::size_t i = 0; i < ending.size(); ++i) sigaction(ending[i], &before_[i], nullptr);
    ::free(path);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  static constexpr std::array<int, 3> ending{SIGINT, SIGTERM, SIGHUP};
  /// Blocks the signals in `ending` in this thread during its lifetime.
  struct Blocked {
    Blocked() {
      sigset_t signals;
      sigemptyset(&signals);
      for (const int number : ending) sigaddset(&signals, number);
      ::pthread_sigmask(SIG_BLOCK, &signals, &before);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t before{};
  };

  void lock(const std::filesystem::path& file) {
    for (struct stat status{};;) {
      file_ = open_regular(file, O_WRONLY | O_CREAT);
      // All other errors are ignored, such as those of file systems without locks.
      if (::flock(file_.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        throw Error(Exit::io, "{}: another process is writing this file", file.string());
      if (::fstat(file_.get(), &ours) == 0 && ::stat(file.c_str(), &status) == 0 &&
          same_file(ours, status))
        return;  // otherwise another process has renamed or removed the file
    }
  }

  static void remove(int number) {
    struct stat status {};  // another process may have created a file of this name after the rename
    if (::stat(path, &status) == 0 && same_file(status, ours)) ::unlink(path);
    ::raise(number);
  }

  static inline char* path = nullptr;
  static inline struct stat ours {};
  FileDescriptor file_;
  std::array<struct sigaction, 3> before_{};
};

/// The N of /dev/fd/N or /proc/self/fd/N; -1 for any other path.
int descriptor_in(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  const bool is_descriptor = folder == "/dev/fd" || folder == "/proc/self/fd";
  return is_descriptor ? std::atoi(path.filename().c_str()) : -1;
}

/// A descriptor through which this file is already open for writing (/dev/stdout, /dev/fd/3, or a
/// file that standard output or standard error is redirected to); -1 if there is none. Such a file
/// is written through the descriptor: a new file would replace the file that the shell has opened.
int open_already(const std::string& path, const struct stat& file) {
  for (const int number : {descriptor_in(path), STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (number < 0 || ::fstat(number, &open) < 0 || !same_file(open, file)) continue;
    if ((::fcntl(number, F_GETFL) & O_ACCMODE) != O_RDONLY) return number;
  }
  return -1;
}

/// The target of a chain of links; the target may be missing.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == 40) throw_io("open", path, ELOOP);
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) throw_io("read the link", path, error.value());
    path = path.parent_path() / target;  // yields `target` if it is absolute
  }
  return path;
}

/// Writes a file atomically, with the permissions of the file that it replaces, if there is one.
void write_whole_file(const std::filesystem::path& path,
                      const std::function<void(const Sink&)>& produce) {
  struct stat before {};
  const bool replaces = ::stat(path.c_str(), &before) == 0;
  const Unfinished unfinished(temporary_name(path));
  write_file_durably(path, [&](FileWriter& file) {
    if (replaces && ::chmod(file.path().c_str(), before.st_mode & 0777) < 0)
      throw_io("set the permissions of", file.path(), errno);
    produce([&](std::string_view text) { file.write(text); });
  });
}

/// Writes to a device or a pipe. Opens it at the first write, because the reader of a pipe may
/// start only after this process has read its input.
void write_special(const std::string& path, const std::function<void(const Sink&)>& produce) {
  std::optional<FileDescriptor> file;
  const auto open = [&] {
    if (!file) file.emplace(open_file(path, O_WRONLY));
  };
  produce([&](std::string_view text) {
    open();
    write_all(file->get(), as_bytes(text), path);
  });
  open();  // a reader waits for the end of file even if the output is empty
  file->close(path);
}

}  // namespace

bool is_standard_output(const std::string& path) {
  if (path == "-") return true;
  struct stat about {};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  if (exists && S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3))
    return false;  // /dev/null
  return exists && open_already(path, about) == STDOUT_FILENO;
}

void check_output(const std::string& output, const std::vector<std::string>& inputs) {
  if (output.empty()) return;  // the command's default, or refused by write_output
  const auto look = [](const std::string& path, int standard, struct stat& about) {
    const int failed = path == "-" ? ::fstat(standard, &about) : ::stat(path.c_str(), &about);
    return failed == 0 && S_ISREG(about.st_mode);
  };
  const std::string name = output == "-" ? "standard output" : output;
  if (const auto run = run_of(output == "-" ? "/dev/stdout" : output))
    throw Error(Exit::usage, "--output: {} is a file of the run {}: choose another name", name,
                run->string());
  struct stat written {
  }, read{};
  if (!look(output, STDOUT_FILENO, written)) return;
  for (const std::string& input : inputs) {
    if (!look(input, STDIN_FILENO, read) || !same_file(read, written)) continue;
    throw Error(Exit::usage, "--output: {} is the same file as {}, which is read", name,
                input == "-" ? "standard input" : input);
  }
}

bool is_text(const std::filesystem::path& file) {
  std::array<char, 8192> head{};
  const std::size_t size = FileReader(file).read_some(head);
  return std::ranges::find(head.begin(), head.begin() + size, '\0') == head.begin() + size;
}

void refuse_other_formats(const std::string& output, const std::string& command,
                          const std::string& writes) {
  for (const char* end : {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".eps", ".ps"}) {
    if (output.ends_with(end))
      throw Error(Exit::usage, "--output {}: {} writes {}", output, command, writes);
  }
}

void write_output(const std::string& path, const std::function<void(const Sink&)>& produce,
                  const std::function<bool(const std::filesystem::path&)>& replaceable) {
  const auto write_to = [&](int number, const std::string& name) {
    const bool terminal = ::isatty(number) == 1;
    produce([&](std::string_view text) {
      terminal ? write_all(number, as_bytes(for_terminal(text)), name)
               : write_all(number, as_bytes(text), name);
    });
  };
  if (path.empty()) throw Error(Exit::usage, "--output: expected a file name or -");
  check_output(path, {});
  if (path == "-") return write_to(STDOUT_FILENO, "standard output");
  struct stat about {};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  if (const int number = exists ? open_already(path, about) : -1; number >= 0) {
    write_to(number, path);
  } else if (exists && !S_ISREG(about.st_mode)) {
    write_special(path, produce);
  } else {
    if (exists && about.st_size > 0 && !(replaceable ? replaceable(path) : is_text(path)))
      throw Error(Exit::usage,
                  "--output {}: heed has not written this file, and does not replace it; remove it "
                  "or choose another name",
                  path);
    write_whole_file(behind_links(path), produce);
  }
}

}  // namespace heed
