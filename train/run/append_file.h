#pragma once
/// An append-only file of records.
#include <cstddef>
#include <filesystem>
#include <span>

#include "autograd/base/files.h"

namespace heed {

/// Appends records, each with one write, so that a killed process can leave only its last record
/// incomplete.
class AppendFile {
 public:
  /// Creates the file if there is none. Throws Error(io) if that fails.
  explicit AppendFile(std::filesystem::path path);
  /// Appends a record. If that fails, removes what was written of it and throws Error(io).
  void append(std::span<const std::byte> record);
  /// Flushes all records to disk. Must be called before a checkpoint relies on them.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace heed
