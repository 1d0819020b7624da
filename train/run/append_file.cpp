#include "train/run/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "autograd/base/error.h"

namespace heed {

AppendFile::AppendFile(std::filesystem::path path)
    : path_(std::move(path)), file_(open_regular(path_, O_WRONLY | O_CREAT | O_APPEND)) {}

void AppendFile::append(std::span<const std::byte> record) {
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  try {
    write_all(file_.get(), record, path_);
  } catch (const Error&) {
    // The disk is probably full. If truncating fails too, readers of the file skip or repair the
    // incomplete record.
    if (before >= 0) static_cast<void>(::ftruncate(file_.get(), before) == 0);
    throw;
  }
}

void AppendFile::sync() { sync_file(file_.get(), path_); }

}  // namespace heed
