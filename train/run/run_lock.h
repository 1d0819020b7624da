#pragma once
/// One process at a time writes into a run folder.
#include <filesystem>

#include "autograd/base/files.h"

namespace heed {

/// Holds the lock on a run folder for as long as it lives. The kernel drops the lock when the
/// process ends, however it ends, so a lock is never stale; the file `.lock` that carries it stays
/// and says "heed 1234", the process that has it or had it last.
class RunLock {
 public:
  /// Throws Error(locked), naming the folder and the holder, when another process has it; then no
  /// byte of the folder was changed. Throws Error(io) where the file system has no locks.
  explicit RunLock(const std::filesystem::path& run);
  /// Throws the same where another process has it, but takes it from nobody.
  static void refuse_if_held(const std::filesystem::path& run);
  /// Whether a heed has had the lock: its mark stays. An empty one may be from a disk that was full.
  static bool left_in(const std::filesystem::path& run, bool even_empty);

 private:
  FileDescriptor file_;
};

}  // namespace heed
