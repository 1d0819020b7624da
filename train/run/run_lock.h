#pragma once
/// The lock on a run folder, to which only one process at a time may write.
#include <filesystem>
#include <string_view>

#include "autograd/io/files.h"

namespace heed {

struct RunFolder;

/// Holds the lock on a run folder for the lifetime of this object. The kernel releases the lock
/// whenever the process ends, so a lock is never stale. The file `.lock` remains and contains "heed
/// 1234", where 1234 is the id of the process that holds or last held the lock. The file is never
/// emptied: once it contains heed's mark, it always does.
class RunLock {
 public:
  /// Acquires the lock. Throws Error(locked), naming the folder and the holder, if another process
  /// holds it, with the folder unchanged; Error(io) if the file system does not support locks;
  /// Error(bad_input) if `.lock` is not a regular file with one name.
  /// `use` completes the message.
  explicit RunLock(const std::filesystem::path& run, std::string_view use = "using this run");
  /// Writes heed's mark and the id of this process, and syncs them to disk. The constructor also
  /// writes them, but ignores errors, because a full disk must not prevent resuming.
  void write_mark() const;
  /// Throws Error(io) if the folder or its lock file has been removed or replaced, for example by
  /// another run: this process must then write nothing more into the folder.
  void confirm() const;
  /// True if another process holds the lock of this run.
  static bool is_held(const std::filesystem::path& run);
  /// Throws the Error(locked) of the constructor if another process holds the lock, but does not
  /// acquire it.
  static void refuse_if_held(const std::filesystem::path& run);
  /// True if the lock file contains heed's mark, which remains after the lock is released. With
  /// `accept_cut`, also true for an incomplete mark or an empty file, which a full disk can leave.
  static bool has_mark(const std::filesystem::path& run, bool accept_cut);

 private:
  void put_mark() const;

  std::filesystem::path path_;
  FileDescriptor file_;
};

/// Creates the folder of a new run and locks it. With `overwrite`, removes an existing run; without
/// it, throws the errors of refuse_existing_run. Also throws the errors of RunLock, write_mark and
/// check_kinds.
RunLock lock_new_run(const RunFolder& run, bool overwrite);

}  // namespace heed
