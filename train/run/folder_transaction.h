#pragma once
/// A folder that appears complete, with all its files, or not at all.
#include <filesystem>
#include <functional>
#include <string>

#include "autograd/base/files.h"

namespace heed {

/// Collects files in the hidden sibling `.NAME.tmp`, then renames it atomically. A
/// transaction that is not committed removes what it has written; a killed one leaves the hidden
/// folder, which the next one of that name removes.
class FolderTransaction {
 public:
  /// `folder` is the final path; its parent must exist.
  explicit FolderTransaction(std::filesystem::path folder);
  ~FolderTransaction();
  FolderTransaction(const FolderTransaction&) = delete;
  FolderTransaction& operator=(const FolderTransaction&) = delete;

  struct Written {
    std::uint64_t size;  ///< bytes
    std::string sha256;  ///< hexadecimal
  };
  /// Writes one file and flushes it to disk. `name` is a plain file name.
  Written write(const std::string& name, const std::function<void(FileWriter&)>& write);
  Written write(const std::string& name, std::string_view bytes);

  /// Renames the folder, replacing one of that name, and flushes the parent to disk.
  void commit();

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

/// Renames a folder atomically to `.NAME.old` (or `.NAME.2.old`, if that is another user's), to be
/// removed. Returns "", or the reason if the system refuses.
std::string hide_folder_if_allowed(const std::filesystem::path& folder);
/// Removes a folder; under its name it is never seen half removed.
void remove_folder_at_once(const std::filesystem::path& folder);

}  // namespace heed
