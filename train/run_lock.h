#pragma once
/// One process at a time writes into a run folder.
#include <filesystem>

#include "train/files.h"

namespace heed {

/// Holds the lock on a run folder for as long as it lives. The kernel drops the lock when the
/// process ends, however it ends, so a lock is never stale; the file `.lock` that carries it stays
/// and holds the process number of its last holder.
class RunLock {
 public:
  /// Throws Error(locked), naming the folder and the holder, when another process has it; then no
  /// byte of the folder was changed. Throws Error(io) where the file system has no locks.
  explicit RunLock(const std::filesystem::path& run);
  /// Throws the same where another process has it, but takes it from nobody.
  static void refuse_if_held(const std::filesystem::path& run);

 private:
  FileDescriptor file_;
};

}  // namespace heed
