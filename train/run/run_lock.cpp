#include "train/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "autograd/base/error.h"
#include "train/run/run_folder.h"

namespace heed {
namespace {

/// A lock file contains one line, "heed 1234\n", where 1234 is the id of the process that holds or
/// last held the lock. A full disk or a killed process can leave a new file empty or its line
/// incomplete, so a number without a newline is ignored.
constexpr std::string_view mark = "heed ";

std::string text_of(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// The process id in the lock file, for messages: " (1234)"; "" if the line is incomplete.
std::string holder(int descriptor) {
  const std::string text = text_of(descriptor);
  const std::size_t end = text.find_first_not_of("0123456789", mark.size());
  if (!text.starts_with(mark) || end == mark.size() || end == std::string::npos ||
      text[end] != '\n')
    return "";
  return fmt::format(" ({})", text.substr(mark.size(), end - mark.size()));
}

int try_lock(int descriptor, int kind) {
  return uninterrupted([&] { return ::flock(descriptor, kind | LOCK_NB); });
}

/// The lock file; nullopt if there is none, or something else of this name.
std::optional<FileDescriptor> find_lock(const std::filesystem::path& run) {
  const std::filesystem::path path = run / ".lock";
  std::error_code ignored;
  if (!path_exists(path) ||
      !std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)))
    return std::nullopt;
  return open_regular(path, O_RDONLY);
}

[[noreturn]] void refuse(const std::filesystem::path& run, int descriptor,
                         std::string_view use = "using this run") {
  throw Error(Exit::locked, "{}: another heed process{} is {}", run.string(), holder(descriptor),
              use);
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run, std::string_view use)
    : path_(run / ".lock"), file_(open_regular(path_, O_RDWR | O_CREAT)) {
  // A run's lock is exclusive. A process that only checks the lock holds a shared lock for a
  // moment; the loop waits until this lock is released.
  for (int tries = 0; try_lock(file_.get(), LOCK_EX) < 0; ++tries) {
    if (errno != EWOULDBLOCK) throw_io("lock", path_, errno);
    if (try_lock(file_.get(), LOCK_SH) < 0 || tries == 1000) refuse(run, file_.get(), use);
    ::flock(file_.get(), LOCK_UN);
    ::usleep(5'000);
  }
  confirm();
  try {
    put_mark();
  } catch (const Error&) {  // see write_mark()
  }
}

void RunLock::put_mark() const {
  // Replaces the former line before it shortens the file, so that the mark is never missing.
  const std::string line = fmt::format("{}{}\n", mark, ::getpid());
  const ssize_t put = ::pwrite(file_.get(), line.data(), line.size(), 0);
  if (put != std::ssize(line)) throw_io("write", path_, put < 0 ? errno : ENOSPC);
  set_length(file_.get(), line.size(), path_);
}

void RunLock::write_mark() const {
  put_mark();
  sync_file(file_.get(), path_);
  sync_folder(path_.parent_path());
}

void RunLock::confirm() const {
  struct stat locked {
  }, named{};
  if (::fstat(file_.get(), &locked) < 0) throw_io("examine", path_, errno);
  const bool exists = ::lstat(path_.c_str(), &named) == 0;
  if (!exists && errno != ENOENT && errno != ENOTDIR) throw_io("examine", path_, errno);
  if (exists && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return;
  throw Error(
      Exit::io,
      "{}: the folder, or its file .lock, was moved, removed or replaced while this process "
      "was using it; nothing more is written there",
      path_.parent_path().string());
}

bool RunLock::has_mark(const std::filesystem::path& run, bool accept_cut) {
  const std::optional<FileDescriptor> file = find_lock(run);
  if (!file) return false;
  const std::string text = text_of(file->get());
  return text.starts_with(mark) || (accept_cut && mark.starts_with(text));
}

bool RunLock::is_held(const std::filesystem::path& run) {
  const std::optional<FileDescriptor> file = find_lock(run);
  return file && try_lock(file->get(), LOCK_SH) < 0 && errno == EWOULDBLOCK;
}

void RunLock::refuse_if_held(const std::filesystem::path& run) {
  if (const std::optional<FileDescriptor> file = find_lock(run); file && is_held(run))
    refuse(run, file->get());
}

RunLock lock_new_run(const RunFolder& run, bool overwrite) {
  create_folders(run.path);
  RunLock lock(run.path);
  lock.write_mark();  // first: without the mark, nobody could tell that later files are a run's
  if (overwrite) {
    clear_run(run);
  } else {
    refuse_existing_run(run);  // another process may have started a run
  }
  check_kinds(run);
  return lock;
}

}  // namespace heed
