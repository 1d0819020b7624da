#pragma once
/// Files of the format GGUF, version 3 (github.com/ggml-org/ggml/blob/master/docs/gguf.md): named values,
/// then named tensors, little-endian. heed writes and reads the types below.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heed {

/// The types of values, in the order of gguf_value_types (gguf_file.cpp).
using GgufValue =
    std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                 std::vector<float>, std::vector<std::int32_t>, std::vector<std::uint8_t>>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// f16: IEEE 754 binary16. q8_0: blocks of 32 neighbours in a row, each a factor in binary16 and 32
/// signed bytes; the factor is max |x| / 127.
enum class GgufType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8 };

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<std::int64_t> shape;  ///< row-major, as in heed: the file stores it reversed
  std::string bytes;                ///< the encoded elements
};

/// The nearest number in binary16, ties to even; ±inf beyond its range.
std::uint16_t to_float16(float value);

/// The values in a type. The size of a row must be a multiple of 32 for q8_0.
std::string gguf_encode(std::span<const float> values, GgufType type);

struct GgufFile {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;

  /// Throws Error(bad_input), with the file and the place in the message, if the file is malformed,
  /// truncated, or contains types that heed does not write, more than 4 dimensions, names twice,
  /// tensors that overlap, or sizes that overflow.
  static GgufFile read(const std::filesystem::path& path);
  static GgufFile parse(std::string_view bytes, const std::string& name);
  /// The value with this name, or nullptr.
  const GgufValue* find(std::string_view name) const;
};

/// The beginning of a file: all but the elements, which follow in the order of the tensors, each at
/// a multiple of gguf_alignment. `bytes` of the tensors are not used.
std::string gguf_header(const GgufMetadata& metadata, std::span<const GgufTensor> tensors);

inline constexpr std::size_t gguf_alignment = 32;
/// The number of bytes of a tensor, from its type and shape.
std::uint64_t gguf_size(GgufType type, std::span<const std::int64_t> shape);

}  // namespace heed
