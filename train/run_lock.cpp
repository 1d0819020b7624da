#include "train/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "autograd/error.h"

namespace heed {
namespace {

/// " (process 1234)", or nothing where the holder has not written its number yet.
std::string holder(int descriptor) {
  std::array<char, 24> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; ++i) digits += text[i];
  return digits.empty() ? "" : fmt::format(" (process {})", digits);
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run) {
  const std::filesystem::path path = run / ".lock";
  file_ = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  int got = ::flock(file_.get(), LOCK_EX | LOCK_NB);
  // Who only looks whether the run is busy holds the lock for a moment; that must not turn away all.
  for (int tries = 0; got < 0 && (errno == EINTR || (errno == EWOULDBLOCK && tries < 20));
       ++tries) {
    ::usleep(10'000);
    got = ::flock(file_.get(), LOCK_EX | LOCK_NB);
  }
  if (got < 0 && errno == EWOULDBLOCK)
    throw Error(Exit::locked, fmt::format("{}: another heed{} is working on this run", run.string(),
                                          holder(file_.get())));
  if (got < 0) throw_io("lock", path, errno);
  // The number only serves messages; a full disk must not keep anybody from resuming.
  const std::string number = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file_.get(), 0) == 0)
    static_cast<void>(::pwrite(file_.get(), number.data(), number.size(), 0) == 0);
}

}  // namespace heed
