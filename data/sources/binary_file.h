#pragma once
#include <string>

#include "autograd/base/lines.h"

namespace heed {

/// The bytes of a file, unpacked if it is gzip. A text's byte-order mark, which read_file removes, is data
/// here. Throws Error(bad_input).
inline std::string read_binary_file(const std::string& path) {
  TextSource source(path, {});
  std::string bytes;
  while (source.read(bytes)) {
  }
  return bytes;
}

}  // namespace heed
