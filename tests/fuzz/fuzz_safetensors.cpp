/// A safetensors file. Accepted tensors must lie within the file and survive a round trip.
#include <cstring>
#include <optional>

#include "autograd/io/formats/safetensors.h"
#include "tests/fuzz/target.h"

namespace heed::fuzz {
namespace {

constexpr std::size_t length_bytes = 8;

void require_sound(const SafetensorsFile& file, std::size_t input_size) {
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : file.tensors()) {
    require(file.find(tensor.name) == &tensor, "a tensor is found by its name");
    require(tensor.shape.size() <= safetensors_max_rank, "the rank is within its limit");
    require(
        tensor.bytes.size() == static_cast<std::uint64_t>(tensor.size()) * size_of(tensor.dtype),
        "the bytes match the shape");
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
    require(tensor.bytes.empty() || address % size_of(tensor.dtype) == 0, "the bytes are aligned");
    bytes += tensor.bytes.size();
  }
  require(bytes + length_bytes <= input_size, "all bytes are in the file");
}

void require_same(const SafetensorsFile& a, const SafetensorsFile& b) {
  require(a.metadata() == b.metadata(), "the metadata are read back");
  require(a.tensors().size() == b.tensors().size(), "the number of tensors is read back");
  for (const TensorView& x : a.tensors()) {
    const TensorView* y = b.find(x.name);
    require(y != nullptr && y->dtype == x.dtype && y->shape == x.shape, x.name + " is read back");
    require(x.bytes.empty() || std::memcmp(x.bytes.data(), y->bytes.data(), x.bytes.size()) == 0,
            "the values are read back");
  }
}

}  // namespace

void target(std::string_view input) {
  std::optional<SafetensorsFile> file;
  try {
    file = SafetensorsFile::parse(input, "x.safetensors");
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, "x.safetensors: ");
    throw;
  }
  require_sound(*file, input.size());
  must_work([&] {
    const std::filesystem::path path = scratch() / "again.safetensors";
    write_safetensors(path, file->tensors(), file->metadata());
    require_same(*file, SafetensorsFile::read(path));
  });
}

}  // namespace heed::fuzz

#if defined(HEED_FUZZ)
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Blind mutation nearly always breaks the length of the header. In three of four cases, this
/// mutator therefore sets the length so that the header ends at the last brace.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size <= heed::fuzz::length_bytes || seed % 4 == 0) return size;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t brace = text.find_last_of('}');
  if (brace == std::string_view::npos || brace < heed::fuzz::length_bytes) return size;
  const std::uint64_t length = brace + 1 - heed::fuzz::length_bytes;
  std::memcpy(data, &length, heed::fuzz::length_bytes);
  return size;
}
#endif
