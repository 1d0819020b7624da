#include "train/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "autograd/error.h"
#include "train/files.h"

namespace heed {

namespace {

/// While one lives, a signal that ends the process removes an unfinished file first.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& file) {
    path = ::strdup(file.c_str());
    for (std::size_t i = 0; i < ending.size(); ++i) {
      struct sigaction action {};
      action.sa_handler = &Unfinished::remove;
      action.sa_flags = SA_RESETHAND;  // once; then the signal does what it always did
      sigaction(ending[i], &action, &before_[i]);
    }
  }
  ~Unfinished() {
    for (std::size_t i = 0; i < ending.size(); ++i) sigaction(ending[i], &before_[i], nullptr);
    ::free(path);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  static void remove(int number) {
    ::unlink(path);
    ::raise(number);
  }

  static constexpr std::array<int, 3> ending{SIGINT, SIGTERM, SIGHUP};
  static inline char* path = nullptr;
  std::array<struct sigaction, 3> before_{};
};

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The descriptor that is this file already (/dev/stdout, /dev/stderr, or their own names), or -1:
/// a file of its own would push aside what the shell has opened.
int open_already(const struct stat& file) {
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (::fstat(number, &open) == 0 && same_file(open, file)) return number;
  }
  return -1;
}

/// Where a chain of links ends; the file itself may be missing.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == 40) throw_io("open", path, ELOOP);
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) throw_io("read the link", path, error.value());
    path = path.parent_path() / target;  // an absolute target stands alone
  }
  return path;
}

/// The unfinished file's name, while no other process writes there too.
class Claim {
 public:
  explicit Claim(const std::filesystem::path& unfinished) {
    for (;;) {
      file_ = open_file(unfinished, O_WRONLY | O_CREAT | O_NOFOLLOW);
      // A disk that knows no locks must not keep anybody from writing.
      if (::flock(file_.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        throw Error(Exit::io,
                    fmt::format("{}: another process is writing it", unfinished.string()));
      struct stat ours {};
      struct stat there {};
      if (::fstat(file_.get(), &ours) == 0 && ::stat(unfinished.c_str(), &there) == 0 &&
          same_file(ours, there))
        return;  // and not one that has just been finished and renamed
    }
  }

 private:
  FileDescriptor file_;
};

/// As a whole, or not at all. A file that is replaced hands on its permissions.
void write_whole_file(const std::filesystem::path& path,
                      const std::function<void(const Sink&)>& produce) {
  struct stat before {};
  const bool replaces = ::stat(path.c_str(), &before) == 0;
  const Claim claim(temporary_name(path));
  const Unfinished remove_on_signal(temporary_name(path));
  write_file_durably(path, [&](FileWriter& file) {
    if (replaces && ::chmod(file.path().c_str(), before.st_mode & 0777) < 0)
      throw_io("set the permissions of", file.path(), errno);
    produce([&](std::string_view text) { file.write(text); });
  });
}

}  // namespace

void write_output(const std::string& path, const std::function<void(const Sink&)>& produce) {
  const auto write_to = [&](int number, const std::string& name) {
    produce([&](std::string_view text) { write_all(number, as_bytes(text), name); });
  };
  if (path == "-") return write_to(STDOUT_FILENO, "standard output");
  struct stat about {};
  const bool there = ::stat(path.c_str(), &about) == 0;
  if (const int number = there ? open_already(about) : -1; number >= 0) {
    write_to(number, path);
  } else if (there && !S_ISREG(about.st_mode)) {
    FileDescriptor file = open_file(path, O_WRONLY);
    write_to(file.get(), path);
    file.close(path);
  } else {
    write_whole_file(behind_links(path), produce);
  }
}

}  // namespace heed
