#pragma once
/// Numbers in files of bytes, little-endian.
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "autograd/base/error.h"

namespace heed {

static_assert(std::endian::native == std::endian::little, "numbers are in files as in memory");

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes numbers and texts from the beginning of bytes. Throws Error(bad_input) at their end.
class ByteCursor {
 public:
  /// Error messages begin with the name of the file.
  ByteCursor(std::string_view bytes, std::string name) : left_(bytes), name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Exit::bad_input, "{}: {}", name_, what);
  }
  std::string_view take(std::uint64_t size, std::string_view what) {
    if (size > left_.size())
      fail(fmt::format("{} has {} bytes, but only {} follow (truncated?)", what, size,
                       left_.size()));
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
  std::string name_;
};

}  // namespace heed
