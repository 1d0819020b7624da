#pragma once
/// Only one process at a time writes to a run folder.
#include <filesystem>

#include "autograd/base/files.h"

namespace heed {

struct RunFolder;

/// Holds the lock on a run folder during its lifetime. The kernel releases the lock when the
/// process ends, however it ends, so a lock is never stale; the file `.lock` stays and contains
/// "heed 1234", the process that holds or last held the lock.
class RunLock {
 public:
  /// Throws Error(locked), naming the folder and the holder, if another process holds it; the
  /// folder is unchanged then. Throws Error(io) if the file system does not support locks.
  explicit RunLock(const std::filesystem::path& run);
  /// Whether another process holds the lock of this run.
  static bool is_held(const std::filesystem::path& run);
  /// Throws as the constructor does if another process holds it; does not take the lock.
  static void refuse_if_held(const std::filesystem::path& run);
  /// Whether heed has ever held the lock: its mark stays. With `accept_cut`, a beginning of the mark counts
  /// too, and so does an empty file: a full disk leaves them.
  static bool has_mark(const std::filesystem::path& run, bool accept_cut);

 private:
  FileDescriptor file_;
};

/// Creates the folder of a new run and locks it; with `overwrite`, removes the run that is there. Throws
/// Error(usage) if there is one and it may not be replaced, Error(locked) as RunLock does.
RunLock lock_new_run(const RunFolder& run, bool overwrite);

}  // namespace heed
