#pragma once
/// The JSON header of a safetensors file, checked word by word as it is read.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/safetensors.h"

namespace heed {

struct HeaderEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< bytes after the header
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> entries;  ///< in the order of the header
  TensorMetadata metadata;
};

/// Throws Error(bad_input), beginning with `name`, for everything that is not
/// {"tensor": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
///  "__metadata__": {"key": "text", …}}, with each tensor's size equal to that of its shape.
/// Offsets are not compared with one another.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& name);

}  // namespace heed
