#include "train/exchange/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "train/exchange/byte_cursor.h"

namespace heed {

namespace {

constexpr std::string_view gguf_magic = "GGUF";
constexpr std::uint32_t gguf_version = 3, gguf_array = 9;
constexpr std::size_t gguf_max_rank = 4;
constexpr std::int64_t gguf_block = 32;  // elements of a block of q8_0

/// The numbers of the types of GgufValue in the file; of an array, that of its elements.
constexpr std::uint32_t gguf_value_types[] = {4, 6, 7, 8, 8, 6, 5, 0};
constexpr std::size_t gguf_first_array = 4;  // index in GgufValue

void append_gguf_text(std::string& out, std::string_view text) {
  append_number<std::uint64_t>(out, text.size());
  out += text;
}

void append_gguf_value(std::string& out, const GgufValue& value) {
  if (value.index() >= gguf_first_array) append_number(out, gguf_array);
  append_number(out, gguf_value_types[value.index()]);
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          append_gguf_text(out, v);
        } else if constexpr (std::is_arithmetic_v<T>) {
          append_number(out, v);
        } else {
          append_number<std::uint64_t>(out, v.size());
          for (const auto& each : v) {
            if constexpr (std::is_same_v<T, std::vector<std::string>>)
              append_gguf_text(out, each);
            else
              append_number(out, each);
          }
        }
      },
      value);
}

std::string gguf_text(ByteCursor& from, std::string_view what) {
  return std::string(from.take(from.number<std::uint64_t>(what), what));
}

/// A number of entries, each of which has at least `smallest` bytes.
std::uint64_t gguf_count(ByteCursor& from, std::uint64_t smallest, std::string_view what) {
  const auto n = from.number<std::uint64_t>(what);
  if (n > from.left() / smallest)
    from.fail(fmt::format("{} entries in {}, but only {} bytes follow (truncated?)", n, what,
                          from.left()));
  return n;
}

template <class T>
std::vector<T> gguf_numbers(ByteCursor& from, const std::string& key) {
  std::vector<T> all(gguf_count(from, sizeof(T), key));
  for (T& each : all) each = from.number<T>(key);
  return all;
}

GgufValue read_gguf_value(ByteCursor& from, const std::string& key) {
  auto type = from.number<std::uint32_t>(key);
  const bool array = type == gguf_array;
  if (array) type = from.number<std::uint32_t>(key);
  if (array && type == 8) {
    std::vector<std::string> texts(gguf_count(from, sizeof(std::uint64_t), key));
    for (std::string& each : texts) each = gguf_text(from, key);
    return texts;
  }
  if (array && type == 6) return gguf_numbers<float>(from, key);
  if (array && type == 5) return gguf_numbers<std::int32_t>(from, key);
  if (array && type == 0) return gguf_numbers<std::uint8_t>(from, key);
  if (!array && type == 4) return from.number<std::uint32_t>(key);
  if (!array && type == 6) return from.number<float>(key);
  if (!array && type == 7) return from.number<std::uint8_t>(key) != 0;
  if (!array && type == 8) return gguf_text(from, key);
  from.fail(fmt::format("{} has the type {}{}, which heed does not read", key,
                        array ? "array of " : "", type));
}

struct GgufEntry {
  GgufTensor tensor;
  std::uint64_t begin = 0, size = 0;
};

GgufEntry read_gguf_entry(ByteCursor& from) {
  GgufEntry entry;
  entry.tensor.name = gguf_text(from, "the name of a tensor");
  const std::string name = shown(entry.tensor.name, 200);
  const auto rank = from.number<std::uint32_t>(name);
  if (rank == 0 || rank > gguf_max_rank)
    from.fail(fmt::format("{} has {} dimensions; 1 to {} are allowed", name, rank, gguf_max_rank));
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto extent = from.number<std::uint64_t>(name);
    if (extent == 0 || extent > std::numeric_limits<std::int32_t>::max())
      from.fail(fmt::format("{} has an extent of {}", name, extent));
    entry.tensor.shape.insert(entry.tensor.shape.begin(), static_cast<std::int64_t>(extent));
  }
  entry.tensor.type = static_cast<GgufType>(from.number<std::uint32_t>(name));
  entry.begin = from.number<std::uint64_t>(name);
  entry.size = gguf_size(entry.tensor.type, entry.tensor.shape);
  if (entry.size == 0)
    from.fail(fmt::format("{} has a type, or a size of rows, that heed does not read", name));
  return entry;
}

std::uint64_t gguf_aligned(std::uint64_t size) {
  return (size + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
}

}  // namespace

std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value), sign = bits >> 16 & 0x8000U;
  const float size = std::fabs(value);
  std::uint32_t rest = 0;
  if (std::isnan(value)) {
    rest = 0x7E00;
  } else if (size >= 65520) {  // the middle between the largest number, 65504, and the next one
    rest = 0x7C00;
  } else if (size < 0x1p-14F) {  // a multiple of 2⁻²⁴
    rest = static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24F));
  } else {
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU, tie = magnitude >> 13 & 1U;
    rest = (magnitude - (112U << 23) + 0xFFFU + tie) >> 13;
  }
  return static_cast<std::uint16_t>(sign | rest);
}

std::string gguf_encode(std::span<const float> values, GgufType type) {
  std::string out;
  if (type == GgufType::f32) {
    out.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  } else if (type == GgufType::f16) {
    out.reserve(2 * values.size());
    for (const float v : values) append_number(out, to_float16(v));
  } else {
    for (std::size_t begin = 0; begin + gguf_block <= values.size(); begin += gguf_block) {
      const std::span<const float> part = values.subspan(begin, gguf_block);
      float largest = 0;
      for (const float v : part) largest = std::max(largest, std::fabs(v));
      const float factor = largest / 127, inverse = factor > 0 ? 1 / factor : 0;
      append_number(out, to_float16(factor));
      for (const float v : part)
        append_number(out, static_cast<std::int8_t>(std::round(v * inverse)));
    }
  }
  return out;
}

std::uint64_t gguf_size(GgufType type, std::span<const std::int64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(extent), &elements)) return 0;
  if (elements > std::numeric_limits<std::uint64_t>::max() / 4) return 0;
  if (type == GgufType::f32) return 4 * elements;
  if (type == GgufType::f16) return 2 * elements;
  return type == GgufType::q8_0 && !shape.empty() && shape.back() % gguf_block == 0
             ? elements / gguf_block * (gguf_block + 2)
             : 0;
}

std::string gguf_header(const GgufMetadata& metadata, std::span<const GgufTensor> tensors) {
  std::string out(gguf_magic);
  append_number(out, gguf_version);
  append_number<std::uint64_t>(out, tensors.size());
  append_number<std::uint64_t>(out, metadata.size());
  for (const auto& [key, value] : metadata) {
    append_gguf_text(out, key);
    append_gguf_value(out, value);
  }
  std::uint64_t at = 0;
  for (const GgufTensor& tensor : tensors) {
    append_gguf_text(out, tensor.name);
    append_number(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
      append_number(out, static_cast<std::uint64_t>(*extent));
    append_number(out, static_cast<std::uint32_t>(tensor.type));
    append_number(out, at);
    at += gguf_aligned(gguf_size(tensor.type, tensor.shape));
  }
  out.resize(gguf_aligned(out.size()), '\0');
  return out;
}

GgufFile GgufFile::parse(std::string_view bytes, const std::string& name) {
  ByteCursor from(bytes, name);
  if (from.take(gguf_magic.size(), "the name of the format") != gguf_magic)
    from.fail("does not begin with GGUF");
  if (const auto version = from.number<std::uint32_t>("the version"); version != gguf_version)
    from.fail(fmt::format("version {} of GGUF; heed reads version {}", version, gguf_version));
  GgufFile file;
  const std::uint64_t tensors = gguf_count(from, 24, "the list of tensors"),
                      values = gguf_count(from, 12, "the list of values");
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key = gguf_text(from, "the name of a value");
    if (!names.insert(key).second) from.fail(shown(key, 200) + " occurs twice");
    GgufValue value = read_gguf_value(from, shown(key, 200));
    file.metadata.emplace_back(std::move(key), std::move(value));
  }
  if (file.find("general.alignment") != nullptr) from.fail("general.alignment is not read");
  std::vector<GgufEntry> entries;
  names.clear();
  for (std::uint64_t i = 0; i < tensors; ++i) {
    entries.push_back(read_gguf_entry(from));
    if (!names.insert(entries.back().tensor.name).second)
      from.fail(shown(entries.back().tensor.name, 200) + " occurs twice");
  }
  const std::uint64_t header = bytes.size() - from.left();
  from.take(gguf_aligned(header) - header, "the gap before the elements");
  std::uint64_t at = 0;
  for (GgufEntry& entry : entries) {
    const std::string shown_name = shown(entry.tensor.name, 200);
    if (entry.begin != at)
      from.fail(fmt::format("{} begins at byte {} of the elements instead of {}", shown_name,
                            entry.begin, at));
    entry.tensor.bytes = from.take(entry.size, shown_name);
    from.take(gguf_aligned(entry.size) - entry.size, shown_name);
    at += gguf_aligned(entry.size);
    file.tensors.push_back(std::move(entry.tensor));
  }
  if (from.left() > 0) from.fail(fmt::format("data after the last tensor ({} B)", from.left()));
  return file;
}

GgufFile GgufFile::read(const std::filesystem::path& path) {
  return parse(read_bytes(path, std::uint64_t{1} << 40), path.string());
}

const GgufValue* GgufFile::find(std::string_view name) const {
  const auto found = std::ranges::find(metadata, name, &std::pair<std::string, GgufValue>::first);
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace heed
