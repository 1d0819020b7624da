#pragma once

#include <string>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"

namespace heed {

/// The bytes of a file, decompressed if it is in gzip format. Unlike read_file, preserves a
/// byte-order mark. Throws as TextSource does.
inline std::string read_binary_file(const std::string& path) {
  TextSource source(path, {});
  std::string bytes;
  while (source.read(bytes)) {
  }
  return bytes;
}

/// Throws Error(bad_input) with the message "PATH: WHY".
[[noreturn]] inline void refuse_file(const std::string& path, const std::string& why) {
  throw Error(Exit::bad_input, "{}: {}", shown_path(path), why);
}

}  // namespace heed
