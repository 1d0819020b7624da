#pragma once
/// A folder for files that another program or library reads or writes.
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "autograd/io/files.h"

namespace heed {

/// A new folder in the system's folder for temporary files; the destructor removes it with its
/// contents. The constructor throws Error(io) if the folder cannot be created.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "heed-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw_io("create the folder", name, errno);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace heed
