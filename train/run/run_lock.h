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
  /// byte of the folder has changed. Throws Error(io) where the file system has no locks.
  explicit RunLock(const std::filesystem::path& run);
  /// Throws the same where another process has it, and does not take the lock.
  static void refuse_if_held(const std::filesystem::path& run);
  /// Whether a heed has ever had the lock: its mark stays. An empty file may be from a full disk.
  static bool left_in(const std::filesystem::path& run, bool even_empty);

 private:
  FileDescriptor file_;
};

}  // namespace heed
