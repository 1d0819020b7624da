#include "data/sources/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "autograd/io/message_text.h"
#include "data/sources/binary_file.h"

namespace heed {
namespace {

/// The value of a key in the header, up to the comma, bracket or brace that ends it; empty if the
/// key is missing.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size() + 3);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value.substr(0, value.find_first_of(value.starts_with('(') ? ")" : ",}"));
}

/// The numbers in the text; one that is out of range becomes -1.
std::vector<std::int64_t> numbers(std::string_view text) {
  std::vector<std::int64_t> all;
  for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
    std::int64_t n = 0;
    const auto [stop, error] = std::from_chars(at, end, n);
    const bool number = error != std::errc::invalid_argument;
    if (number) all.push_back(error == std::errc() ? n : -1);
    at = number ? stop : at + 1;
  }
  return all;
}

template <class T>
void copy_values(std::string_view bytes, std::vector<float>& into) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    into.push_back(static_cast<float>(value));
  }
}

/// The content of a file: values of `size` bytes each, in row-major order.
struct Stored {
  std::string file, type;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, size = 0;

  std::string_view values() const { return std::string_view(file).substr(begin); }
};

/// Reads a .npy file. `size_of` returns the size in bytes of a value of the given type, or 0 if the
/// caller does not accept the type. `types` lists the accepted types for messages.
Stored read_stored(const std::string& path, std::size_t (*size_of)(std::string_view),
                   std::string_view types) {
  Stored stored;
  stored.file = read_binary_file(path);
  const std::string_view file = stored.file;
  if (file.size() < 12 || !file.starts_with("\x93NUMPY")) refuse_file(path, "not a .npy file");
  // The length of the header is stored in two bytes in version 1 and in four in version 2.
  const bool first = file[6] == 1;
  std::size_t length = 0;
  for (std::size_t k = first ? 2 : 4; k-- > 0;)
    length = length << 8 | static_cast<unsigned char>(file[8 + k]);
  const std::size_t begin = first ? 10 : 12;
  if (length > file.size() - begin) refuse_file(path, "a .npy file that ends within its header");
  const std::string_view header = file.substr(begin, length);
  stored.type = value_of(header, "descr");
  stored.begin = begin + length;
  stored.size = size_of(stored.type);
  if (stored.size == 0 || value_of(header, "fortran_order") != "False") {
    refuse_file(
        path,
        fmt::format("a .npy file of type {}{}; only {} in row-major order can be read",
                    shown(stored.type), stored.size == 0 ? "" : " in column-major order", types));
  }
  stored.shape = numbers(value_of(header, "shape"));
  constexpr std::size_t max_rank = 64;  // of NumPy
  const bool valid = std::ranges::all_of(stored.shape, [](std::int64_t n) { return n >= 0; });
  if (!valid || stored.shape.size() > max_rank)
    refuse_file(path, fmt::format("a .npy file with an invalid shape ({} dimensions)",
                                  stored.shape.size()));
  return stored;
}

/// Throws Error(bad_input) if the number of values in a file does not match its shape.
void require_all_values(const std::string& path, const Stored& stored) {
  const auto max_values = static_cast<std::int64_t>(stored.values().size() / stored.size);
  std::int64_t values = std::ranges::count(stored.shape, 0) > 0 ? 0 : 1;
  for (const std::int64_t n : stored.shape)
    values = n < 0 || values < 0 || (n > 0 && values > max_values / n) ? -1 : values * n;
  if (values * static_cast<std::int64_t>(stored.size) == std::ssize(stored.values())) return;
  refuse_file(path, fmt::format("the values have {} bytes, which does not match the shape {}",
                                stored.values().size(), fmt::join(stored.shape, " x ")));
}

}  // namespace

Matrix read_npy(const std::string& path) {
  const auto size_of = [](std::string_view type) -> std::size_t {
    return type == "'<f4'" ? 4 : type == "'<f8'" ? 8 : 0;
  };
  const Stored stored = read_stored(path, size_of, "float32 and float64 ('<f4', '<f8')");
  if (stored.shape.size() != 2)
    refuse_file(path, fmt::format("expected a matrix, got an array of shape ({})",
                                  fmt::join(stored.shape, ", ")));
  require_all_values(path, stored);
  Matrix matrix{stored.shape[0], stored.shape[1], {}};
  stored.size == 4 ? copy_values<float>(stored.values(), matrix.values)
                   : copy_values<double>(stored.values(), matrix.values);
  return matrix;
}

ByteArray read_npy_bytes(const std::string& path) {
  const auto size_of = [](std::string_view type) -> std::size_t {
    return type == "'|u1'" || type == "'u1'" ? 1 : 0;
  };
  const Stored stored = read_stored(path, size_of, "uint8 ('|u1')");
  require_all_values(path, stored);
  const std::string_view values = stored.values();
  return {stored.shape, {values.begin(), values.end()}};
}

}  // namespace heed
