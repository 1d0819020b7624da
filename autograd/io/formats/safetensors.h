#pragma once
/// Named tensors in one file, in the open format "safetensors"
/// (github.com/huggingface/safetensors): the length of the header as eight bytes (little-endian),
/// the header as JSON, then all elements, row-major and little-endian, without gaps.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/io/files.h"

namespace heed {

enum class DType { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };
constexpr auto names_of(DType) {  // the spelling in the file
  return enum_names<DType>("BOOL", "U8", "I8", "U16", "I16", "F16", "BF16", "U32", "I32", "F32",
                           "U64", "I64", "F64");
}
/// Bytes per element.
constexpr std::size_t size_of(DType dtype) {
  return dtype < DType::u16 ? 1 : dtype < DType::u32 ? 2 : dtype < DType::u64 ? 4 : 8;
}

/// Limits on a file's contents, checked before memory for the tensors is allocated.
inline constexpr std::uint64_t safetensors_max_header = std::uint64_t{4} << 20;  // bytes
inline constexpr std::size_t safetensors_max_rank = 8;
inline constexpr std::size_t safetensors_max_names = 65'536;  // tensors, or metadata keys

/// A view of one tensor, whose bytes belong to another object.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;   ///< empty: a scalar
  std::span<const std::byte> bytes;  ///< the elements, row-major, little-endian

  std::int64_t size() const;        ///< number of elements
  std::string description() const;  ///< "F32 [512, 256]"
  /// The elements as T, whose size must be that of the dtype. The bytes of a SafetensorsFile are
  /// always aligned.
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

using TensorMetadata = std::map<std::string, std::string>;

/// A file read entirely into memory. Reading throws Error(bad_input), with the file and the place
/// in the message, for every violation of the format or the limits, such as a header that is
/// truncated, too long or not JSON; duplicate names; unknown types; more than 8 dimensions; sizes
/// that overflow or disagree with the shape; elements that overlap, leave gaps, or end before or
/// after the file does.
class SafetensorsFile {
 public:
  static SafetensorsFile read(const std::filesystem::path& path);
  /// Parses bytes in memory; messages name the file `name`.
  static SafetensorsFile parse(std::string_view bytes, const std::string& name);

  /// The tensors in the order of their bytes.
  const std::vector<TensorView>& tensors() const& { return tensors_; }
  /// The tensor with this name, or nullptr.
  const TensorView* find(std::string_view name) const&;
  const TensorMetadata& metadata() const& { return metadata_; }
  // Deleted: the views would point into a temporary, as in `for (auto& t : read(path).tensors())`.
  const std::vector<TensorView>& tensors() && = delete;
  const TensorView* find(std::string_view name) && = delete;
  const TensorMetadata& metadata() && = delete;

  // The views point into data_, so a SafetensorsFile can only be moved.
  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

 private:
  /// Fills a span with the file's next bytes.
  using Take = std::function<void(std::span<std::byte>)>;

  SafetensorsFile() = default;
  /// Checks the header before allocating the memory and reading the data that it specifies.
  static SafetensorsFile load(std::uint64_t size, const Take& take, const std::string& name);

  std::vector<TensorView> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;  // maps a name to its index in tensors_
  TensorMetadata metadata_;
  struct Free {
    void operator()(std::uint64_t* words) const noexcept { std::free(words); }
  };
  // The memory consists of 64-bit words, so that the elements are aligned. It comes from malloc,
  // which leaves it uninitialised and returns nullptr if there is too little.
  std::unique_ptr<std::uint64_t[], Free> data_;
};

/// Writes the tensors by decreasing element width and, for equal widths, by name, so that each is
/// aligned and equal tensors always result in the same bytes. Throws Error(failed) for a duplicate
/// or reserved name, or if the number of bytes does not match the shape.
void write_safetensors(FileWriter& file, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata = {});

/// Writes a safetensors file atomically.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata = {});

}  // namespace heed
