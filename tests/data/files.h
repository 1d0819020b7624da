#pragma once
/// The contents of binary files: .npy and IDX.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace heed::testing {

inline std::string little(std::uint32_t n, int bytes) {
  std::string text;
  for (int k = 0; k < bytes; ++k) text += static_cast<char>(n >> (8 * k) & 255);
  return text;
}

inline std::string npy(const std::string& descr, const std::string& shape,
                       const std::string& values, const std::string& order = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(std::max<std::size_t>(header.size() + 1, 118), ' ');
  header.back() = '\n';
  const auto size = static_cast<std::uint32_t>(header.size());
  return "\x93NUMPY\x01" + std::string(1, '\0') + little(size, 2) + header + values;
}

inline std::string idx(std::vector<std::uint32_t> shape, const std::string& values, char type = 8) {
  std::string bytes{'\0', '\0', type, static_cast<char>(shape.size())};
  for (const std::uint32_t n : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 255);
  }
  return bytes + values;
}

}  // namespace heed::testing
