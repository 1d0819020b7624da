#include "autograd/io/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are little-endian in the file and are written as in memory");

constexpr std::uint64_t kLengthBytes = 8;  // size of the first field, the header's length

/// A tensor's entry in the header; byte offsets count from the end of the header.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

/// Reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}; the size must match the shape.
HeaderEntry read_entry(const std::string& name, const nlohmann::json& about,
                       const std::string& file) {
  const auto fail = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: header: \"{}\": {}", file, shown(name, 200), what);
  };
  const auto numbers = [&](const char* key, std::size_t min_size, std::size_t max_size) {
    std::vector<std::int64_t> values;
    const nlohmann::json& list = about.at(key);
    bool right = list.is_array() && list.size() >= min_size && list.size() <= max_size;
    for (std::size_t i = 0; right && i < list.size(); ++i) {
      right = list[i].is_number_unsigned() && list[i].get<std::uint64_t>() <= INT64_MAX;
      values.push_back(right ? list[i].get<std::int64_t>() : 0);
    }
    if (!right)
      fail(fmt::format("{} must be a list of {}{} whole numbers from 0 to 2^63 - 1", key,
                       min_size == max_size ? "" : "at most ", max_size));
    return values;
  };
  if (!about.is_object()) fail("must be an object");
  for (const auto& [key, value] : about.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      fail(fmt::format("unknown key \"{}\"", shown(key)));
  }
  if (about.size() != 3) fail("dtype, shape or data_offsets is missing");
  const nlohmann::json& type = about.at("dtype");
  constexpr auto names = names_of(DType{});
  const auto known = std::ranges::find(names, type.is_string() ? type.get<std::string>() : "");
  if (known == names.end()) fail(fmt::format("unknown dtype {}", shown(type.dump())));
  const auto dtype = static_cast<DType>(known - names.begin());
  std::vector<std::int64_t> shape = numbers("shape", 0, safetensors_max_rank);
  const std::vector<std::int64_t> offsets = numbers("data_offsets", 2, 2);
  if (offsets[0] > offsets[1])
    fail(fmt::format("data_offsets [{}, {}] end before they begin", offsets[0], offsets[1]));
  std::int64_t elements = 1, bytes = 0;
  bool overflow = false;
  for (const std::int64_t extent : shape)
    overflow |= __builtin_mul_overflow(elements, extent, &elements);
  overflow |= __builtin_mul_overflow(elements, size_of(dtype), &bytes);
  if (overflow)
    fail(fmt::format("the size of shape [{}] in bytes does not fit in 64 bits",
                     fmt::join(shape, ", ")));
  if (bytes != offsets[1] - offsets[0])
    fail(fmt::format("{} [{}] has {} bytes, but data_offsets specify {}", name_of(dtype),
                     fmt::join(shape, ", "), bytes, offsets[1] - offsets[0]));
  return {name, dtype, std::move(shape), static_cast<std::uint64_t>(offsets[0]),
          static_cast<std::uint64_t>(offsets[1])};
}

TensorMetadata read_metadata(const nlohmann::json& about, const std::string& file) {
  TensorMetadata metadata;
  const auto fail = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: header: __metadata__ {}", file, what);
  };
  if (!about.is_object()) fail("must be an object");
  if (about.size() > safetensors_max_names)
    fail(fmt::format("has more than {} names", safetensors_max_names));
  for (const auto& [key, value] : about.items()) {
    if (!value.is_string())
      fail(fmt::format("must contain only strings; the value of \"{}\" is not a string",
                       shown(key, 200)));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Sorts the entries by position. They must be contiguous and cover all data; empty entries may lie
/// at the boundaries of others.
void check_layout(std::vector<HeaderEntry>& entries, std::uint64_t data_size,
                  const std::string& name) {
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const auto fail = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: {}", name, what);
  };
  std::uint64_t at = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.end > data_size)
      fail(fmt::format("\"{}\" ends at byte {} of the data, which end at byte {} (truncated?)",
                       shown(entry.name, 200), entry.end, data_size));
    if (entry.begin != at)
      fail(fmt::format("\"{}\" begins at byte {} of the data instead of {} ({})",
                       shown(entry.name, 200), entry.begin, at,
                       entry.begin > at ? "a gap" : "an overlap"));
    at = entry.end;
  }
  if (at != data_size) fail(fmt::format("extra bytes after the last tensor: {}", data_size - at));
}

/// The header for tensors in this order: JSON, padded with spaces so that the data are aligned.
std::string header_of(const std::vector<const TensorView*>& tensors,
                      const TensorMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorView* tensor : tensors) {
    if (header.contains(tensor->name) || tensor->name == "__metadata__")
      throw Error(Exit::failed, "safetensors: duplicate or reserved tensor name {}", tensor->name);
    const std::uint64_t end = at + tensor->bytes.size();
    if (tensor->bytes.size() != static_cast<std::uint64_t>(tensor->size()) * size_of(tensor->dtype))
      throw Error(Exit::failed, "safetensors: tensor {}: {} bytes do not match {}", tensor->name,
                  tensor->bytes.size(), tensor->description());
    header[tensor->name] = {
        {"dtype", name_of(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  return text;
}

}  // namespace

std::int64_t TensorView::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::string TensorView::description() const {
  return fmt::format("{} [{}]", name_of(dtype), fmt::join(shape, ", "));
}

SafetensorsFile SafetensorsFile::read(const std::filesystem::path& path) {
  FileReader file(path);
  return load(
      file.size(), [&](std::span<std::byte> into) { file.read(into); }, path.string());
}

SafetensorsFile SafetensorsFile::parse(std::string_view bytes, const std::string& name) {
  return load(
      bytes.size(),
      [&](std::span<std::byte> into) {
        std::memcpy(into.data(), bytes.data(), into.size());
        bytes.remove_prefix(into.size());
      },
      name);
}

SafetensorsFile SafetensorsFile::load(std::uint64_t size, const Take& take,
                                      const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: {}", name, what);
  };
  if (size < kLengthBytes)
    fail(fmt::format("expected a safetensors file of at least 8 bytes, got {}", size));
  std::uint64_t header_length = 0;
  take(std::as_writable_bytes(std::span(&header_length, 1)));
  size -= kLengthBytes;
  if (header_length > safetensors_max_header)
    fail(fmt::format("header of {} bytes; at most {} are allowed (is it a safetensors file?)",
                     header_length, safetensors_max_header));
  if (header_length > size)
    fail(fmt::format("header of {} bytes, but only {} follow (truncated?)", header_length, size));
  std::string json(header_length, '\0');
  take(std::as_writable_bytes(std::span(json)));
  size -= header_length;
  if (!json.starts_with('{')) fail("header: must begin with {");
  constexpr int depth = 3;  // the levels: header, tensor, the tensor's shape
  SafetensorsFile file;
  std::vector<HeaderEntry> entries;
  const nlohmann::json header = parse_json(json, name + ": header", depth);
  if (header.size() > safetensors_max_names)
    fail(fmt::format("header: more than {} names", safetensors_max_names));
  for (const auto& [key, about] : header.items()) {
    if (key == "__metadata__")
      file.metadata_ = read_metadata(about, name);
    else
      entries.push_back(read_entry(key, about, name));
  }
  check_layout(entries, size, name);

  // Elements may be unaligned in files of other programs, so each tensor is read into separate,
  // aligned words.
  const auto words_of = [](const HeaderEntry& entry) {
    return (entry.end - entry.begin + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  };
  std::uint64_t words = 0;
  for (const HeaderEntry& entry : entries) words += words_of(entry);
  file.data_.reset(static_cast<std::uint64_t*>(
      std::malloc(std::max<std::uint64_t>(words, 1) * sizeof(std::uint64_t))));
  if (!file.data_) throw Error(Exit::io, "{}: not enough memory for its {} bytes", name, size);
  std::uint64_t* place = file.data_.get();
  for (HeaderEntry& entry : entries) {
    const auto into = std::span(reinterpret_cast<std::byte*>(place), entry.end - entry.begin);
    if (!into.empty()) take(into);
    file.index_.emplace(entry.name, file.tensors_.size());
    place += words_of(entry);
    file.tensors_.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape), into});
  }
  return file;
}

const TensorView* SafetensorsFile::find(std::string_view name) const& {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

void write_safetensors(FileWriter& file, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    const std::size_t size_a = size_of(a->dtype), size_b = size_of(b->dtype);
    return size_a != size_b ? size_a > size_b : a->name < b->name;
  });
  const std::string header = header_of(order, metadata);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorView* tensor : order) file.write(tensor->bytes);
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata) {
  write_file_durably(path, [&](FileWriter& file) { write_safetensors(file, tensors, metadata); });
}

}  // namespace heed
