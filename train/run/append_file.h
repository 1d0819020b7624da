#pragma once
/// An append-only file of records.
#include <cstddef>
#include <filesystem>
#include <span>

#include "autograd/io/files.h"

namespace heed {

/// Appends each record in one piece, so that only the last record can be incomplete if the process
/// is killed.
class AppendFile {
 public:
  /// Opens the file, or creates it if it is missing. Throws the errors of open_regular.
  explicit AppendFile(std::filesystem::path path);
  /// Appends a record. If that fails, throws Error(io) after removing, if possible, the part of the
  /// record that was written.
  void append(std::span<const std::byte> record);
  /// Flushes all records to disk. Must be called before a checkpoint relies on them.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace heed
