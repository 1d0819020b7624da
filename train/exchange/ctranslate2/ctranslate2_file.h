#pragma once
/// The file model.bin of CTranslate2 (github.com/OpenNMT/CTranslate2), version 6: the name and revision of a
/// specification, named tensors, and further names of tensors, little-endian.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/io/formats/safetensors.h"

namespace heed {

/// A further name of a tensor, and the name that has the elements.
using TensorAliases = std::vector<std::pair<std::string, std::string>>;

/// Writes the file. The types are f32, i8, i16, i32 and f16. Throws Error(usage) for a tensor of 4 GiB
/// or more, and Error(failed) for another type.
void write_ctranslate2(FileWriter& file, std::string_view specification, std::uint32_t revision,
                       std::span<const TensorView> tensors, const TensorAliases& aliases);

/// A file read into memory.
struct CTranslate2File {
  std::string specification;
  std::uint32_t revision = 0;
  std::vector<TensorView> tensors;  ///< views of `bytes`
  TensorAliases aliases;
  std::unique_ptr<const std::string> bytes;

  /// Throws Error(bad_input), with the file and the place in the message, if the file is malformed or
  /// truncated, or has another version, other types, names twice, or aliases of tensors that it lacks.
  static CTranslate2File read(const std::filesystem::path& path);
  static CTranslate2File parse(std::string bytes, const std::string& name);
};

}  // namespace heed
