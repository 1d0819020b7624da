#include "train/run/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>

#include "autograd/base/error.h"

namespace heed {

namespace {

// ---- records ---------------------------------------------------------------------------------

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof word; ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(word >> (8 * i)));
  return bytes;
}

std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(crc32c(bytes), 15) + 0xA282EAD8U);
}

std::string record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + masked_crc(length) + std::string(bytes) + masked_crc(bytes);
}

// ---- messages --------------------------------------------------------------------------------

enum class Wire : std::uint64_t { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(static_cast<unsigned char>((value & 0x7F) | 0x80));
  return bytes + static_cast<char>(value);
}

std::string key(std::uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<std::uint64_t>(wire));
}

std::string whole(std::uint64_t field, std::int64_t value) {
  return key(field, Wire::varint) + varint(static_cast<std::uint64_t>(value));
}

std::string number(std::uint64_t field, double value) {
  return key(field, Wire::eight_bytes) + little_endian(std::bit_cast<std::uint64_t>(value));
}

std::string number(std::uint64_t field, float value) {
  return key(field, Wire::four_bytes) + little_endian(std::bit_cast<std::uint32_t>(value));
}

/// A length-delimited field: a string, bytes or a message.
std::string counted(std::uint64_t field, std::string_view bytes) {
  return key(field, Wire::counted) + varint(bytes.size()) + std::string(bytes);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// ---- files -----------------------------------------------------------------------------------

constexpr std::string_view name_begin = "events.out.tfevents.";

/// The time in the name of an event file; 0 for other names, and for times that are longer than
/// those of heed's files and would not sort with them.
std::int64_t time_in(const std::string& name) {
  constexpr std::int64_t longest = 9'999'999'999;
  std::int64_t time = 0;
  if (name.starts_with(name_begin))
    std::from_chars(name.data() + name_begin.size(), name.data() + name.size(), time);
  return time > longest ? 0 : time;
}

std::filesystem::path new_event_file(const std::filesystem::path& folder) {
  create_folders(folder);
  auto time = static_cast<std::int64_t>(seconds_since_1970());
  std::error_code error;  // ignored: creating the file reports it
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    time = std::max(time, time_in(entry.path().filename().string()) + 1);
  return folder / fmt::format("{}{:010}.heed", name_begin, time);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // 0x1EDC6F41 with reflected bits
  std::uint32_t rest = ~0U;
  for (const char c : bytes) {
    rest ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
  }
  return ~rest;
}

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(new_event_file(folder)) {
  append(counted(3, "brain.Event:2"), 0);
  append(counted(7, whole(1, 1)), first_step);
}

void EventFile::scalars(std::int64_t step, std::span<const TaggedScalar> values) {
  std::string summary;
  for (const TaggedScalar& v : values)
    summary += counted(1, counted(1, v.tag) + number(2, static_cast<float>(v.value)));
  if (!summary.empty()) append(counted(5, summary), step);
}

void EventFile::text(std::int64_t step, std::string_view tag, std::string_view markdown) {
  const std::string metadata = counted(1, counted(1, "text")) + whole(4, 2);
  const std::string tensor =
      whole(1, 7) + counted(2, counted(2, whole(1, 1))) + counted(8, markdown);
  append(counted(5, counted(1, counted(1, tag) + counted(8, tensor) + counted(9, metadata))), step);
}

void EventFile::append(std::string_view fields, std::int64_t step) {
  const std::string event = number(1, seconds_since_1970()) + whole(2, step) + std::string(fields);
  file_.append(as_bytes(record(event)));
}

}  // namespace heed
