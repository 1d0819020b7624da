#include "data/sources/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "autograd/base/lines.h"
#include "autograd/base/message_text.h"
#include "data/sources/binary_file.h"

namespace heed {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(Exit::bad_input, fmt::format("{}: {}", shown_path(path), why));
}

/// What follows 'key': in the header, up to the comma, bracket or brace that ends it.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size() + 3);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value.substr(0, value.find_first_of(value.starts_with('(') ? ")" : ",}"));
}

std::vector<std::int64_t> numbers(std::string_view text) {
  std::vector<std::int64_t> all;
  for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
    std::int64_t n = 0;
    const auto [stop, error] = std::from_chars(at, end, n);
    if (error == std::errc()) all.push_back(n);
    at = error == std::errc() ? stop : at + 1;
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

}  // namespace

Matrix read_npy(const std::string& path) {
  const std::string bytes = read_binary_file(path);
  const std::string_view file = bytes;
  if (file.size() < 12 || !file.starts_with("\x93NUMPY")) refuse(path, "not a .npy file");
  const bool first =
      file[6] == 1;  // the header's length has two bytes in version 1, four in version 2
  std::size_t length = 0;
  for (std::size_t k = first ? 2 : 4; k-- > 0;)
    length = length << 8 | static_cast<unsigned char>(file[8 + k]);
  const std::size_t begin = first ? 10 : 12;
  if (length > file.size() - begin) refuse(path, "a .npy file that ends in its header");
  const std::string_view header = file.substr(begin, length), values = file.substr(begin + length),
                         type = value_of(header, "descr");
  const std::size_t size = type == "'<f4'" ? 4 : type == "'<f8'" ? 8 : 0;
  if (size == 0 || value_of(header, "fortran_order") != "False") {
    refuse(path, fmt::format("a .npy file of type {}{}; float32 and float64 ('<f4', '<f8') in rows "
                             "can be read",
                             shown(type), size == 0 ? "" : " in columns"));
  }
  const std::vector<std::int64_t> shape = numbers(value_of(header, "shape"));
  if (shape.size() != 2)
    refuse(path, fmt::format("an array of shape ({}), not a matrix", fmt::join(shape, ", ")));
  Matrix matrix{shape[0], shape[1], {}};
  const auto most = static_cast<std::int64_t>(values.size() / size);
  if (matrix.rows < 0 || matrix.columns < 0 ||
      (matrix.columns > 0 && matrix.rows > most / matrix.columns) ||
      matrix.rows * matrix.columns * static_cast<std::int64_t>(size) != std::ssize(values)) {
    refuse(path, fmt::format("{} bytes of values, which is not {} x {}", values.size(), shape[0],
                             shape[1]));
  }
  size == 4 ? copy_values<float>(values, matrix.values)
            : copy_values<double>(values, matrix.values);
  return matrix;
}

}  // namespace heed
