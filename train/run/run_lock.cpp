#include "train/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "autograd/base/error.h"
#include "train/run/run_folder.h"

namespace heed {
namespace {

/// A lock file contains one line, "heed 1234\n", where 1234 is the id of the process that holds or
/// last held the lock. A full disk or a killed process can leave an incomplete line, so a number
/// without a newline is ignored.
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

[[noreturn]] void refuse(const std::filesystem::path& run, int descriptor) {
  throw Error(Exit::locked, "{}: another heed process{} is using this run", run.string(),
              holder(descriptor));
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run) {
  const std::filesystem::path path = run / ".lock";
  file_ = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  // A run's lock is exclusive. A process that only checks the lock holds a shared lock for a
  // moment; the loop waits until this lock is released.
  for (int tries = 0; try_lock(file_.get(), LOCK_EX) < 0; ++tries) {
    if (errno != EWOULDBLOCK) throw_io("lock", path, errno);
    if (try_lock(file_.get(), LOCK_SH) < 0 || tries == 1000) refuse(run, file_.get());
    ::flock(file_.get(), LOCK_UN);
    ::usleep(5'000);
  }
  // Only messages use the process id, so errors are ignored: a full disk must not prevent resuming.
  const std::string number = fmt::format("{}{}\n", mark, ::getpid());
  if (::ftruncate(file_.get(), 0) == 0)
    static_cast<void>(::pwrite(file_.get(), number.data(), number.size(), 0) == 0);
}

bool RunLock::has_mark(const std::filesystem::path& run, bool accept_cut) {
  const std::filesystem::path path = run / ".lock";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)))
    return false;
  const std::string text = text_of(open_file(path, O_RDONLY | O_NOFOLLOW).get());
  return text.starts_with(mark) || (accept_cut && mark.starts_with(text));
}

bool RunLock::is_held(const std::filesystem::path& run) {
  const std::filesystem::path path = run / ".lock";
  if (!path_exists(path)) return false;
  const FileDescriptor file = open_file(path, O_RDONLY | O_NOFOLLOW);
  return try_lock(file.get(), LOCK_SH) < 0 && errno == EWOULDBLOCK;
}

void RunLock::refuse_if_held(const std::filesystem::path& run) {
  if (is_held(run)) refuse(run, open_file(run / ".lock", O_RDONLY | O_NOFOLLOW).get());
}

RunLock lock_new_run(const RunFolder& run, bool overwrite) {
  create_folders(run.path);
  RunLock lock(run.path);
  if (overwrite) {
    clear_run(run);
  } else {
    refuse_existing_run(run);  // another process may have started a run
  }
  return lock;
}

}  // namespace heed
