#pragma once
/// A folder that appears whole, with all its files, or not at all.
#include <filesystem>
#include <functional>
#include <string>

#include "autograd/base/files.h"

namespace heed {

/// Collects files in the hidden sibling `.NAME.tmp`, then gives it its name in one step. A
/// transaction that is not committed removes what it has written; one that was killed leaves the
/// hidden folder, which the next one of that name removes.
class FolderTransaction {
 public:
  /// `folder` is the name to be; its parent must exist.
  explicit FolderTransaction(std::filesystem::path folder);
  ~FolderTransaction();
  FolderTransaction(const FolderTransaction&) = delete;
  FolderTransaction& operator=(const FolderTransaction&) = delete;

  struct Written {
    std::uint64_t size;  ///< bytes
    std::string sha256;  ///< hexadecimal
  };
  /// Writes one file and pushes it to the disk. `name` is a plain file name.
  Written write(const std::string& name, const std::function<void(FileWriter&)>& write);
  Written write(const std::string& name, std::string_view bytes);

  /// Gives the folder its name, replacing a folder that has it, and pushes that to the disk.
  void commit();

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

/// Takes a folder's name away in one step; it is `.NAME.old` then (or `.NAME.2.old`, where that is
/// another user's), to be removed. Where the system does not allow it, returns why, and else "".
std::string hide_folder_if_allowed(const std::filesystem::path& folder);
/// Removes a folder so that no moment shows half of it under its name.
void remove_folder_at_once(const std::filesystem::path& folder);

}  // namespace heed
