#pragma once

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <string>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"

namespace heed {

/// Throws Error(bad_input) with the message "PATH: WHY".
[[noreturn]] inline void refuse_file(const std::string& path, const std::string& why) {
  throw Error(Exit::bad_input, "{}: {}", shown_path(path), why);
}

/// Throws Error(bad_input) for a pipe with a name in the file system, to which nobody may ever
/// write. Pipes of the shell (/dev/fd/N) already have a writer.
inline void refuse_named_pipe(const std::string& path) {
  struct stat about {};
  struct statfs system {};
  if (::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode) &&
      ::statfs(path.c_str(), &system) == 0 && system.f_type != PIPEFS_MAGIC)
    refuse_file(path, "is a named pipe, to which nobody may ever write");
}

/// The bytes of a file, decompressed if it is in gzip format. Unlike read_file, preserves a
/// byte-order mark. Throws as TextSource does, and for a named pipe.
inline std::string read_binary_file(const std::string& path) {
  refuse_named_pipe(path);
  TextSource source(path, {});
  std::string bytes;
  while (source.read(bytes)) {
  }
  return bytes;
}

}  // namespace heed
