#include "data/sources/idx.h"

#include <fmt/format.h>

#include <charconv>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/lines.h"
#include "data/sources/binary_file.h"

namespace heed {
namespace {

constexpr unsigned char bytes_type = 0x08;  // the type of the values: unsigned bytes

bool begins_as_idx(std::string_view bytes) {
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 &&
         static_cast<unsigned char>(bytes[2]) >= bytes_type &&
         static_cast<unsigned char>(bytes[2]) <= 0x0E && bytes[3] >= 1 && bytes[3] <= 4;
}

}  // namespace

bool IdxFile::is(const std::string& path) {
  TextSource source(path, {});
  std::string begin;
  while (begin.size() < 4 && source.read(begin)) {
  }
  return begins_as_idx(begin);
}

IdxFile IdxFile::read(const std::string& path) {
  IdxFile file;
  file.bytes_ = read_binary_file(path);
  const std::string& bytes = file.bytes_;
  if (!begins_as_idx(bytes)) refuse_file(path, "not an IDX file");
  if (static_cast<unsigned char>(bytes[2]) != bytes_type)
    refuse_file(path, "an IDX file whose values are not bytes");
  const auto dimensions = static_cast<std::size_t>(bytes[3]);
  file.begin_ = 4 + 4 * dimensions;
  if (bytes.size() < file.begin_) refuse_file(path, "an IDX file that ends within its header");
  std::size_t values = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::uint32_t n = 0;
    for (std::size_t k = 0; k < 4; ++k)
      n = n << 8 | static_cast<unsigned char>(bytes[4 + 4 * d + k]);
    file.shape_.push_back(n);
    values *= n;
    if (d > 0) file.item_ *= n;
    if (values > bytes.size()) break;
  }
  if (values != bytes.size() - file.begin_) {
    refuse_file(path, fmt::format("the IDX header declares {} values, but {} follow",
                                  fmt::join(file.shape_, " x "), bytes.size() - file.begin_));
  }
  return file;
}

std::span<const std::uint8_t> IdxFile::operator[](std::int64_t i) const {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes_.data() + begin_);
  return {begin + static_cast<std::size_t>(i) * item_, item_};
}

std::span<const std::uint8_t> IdxFile::item(const IdxItem& item, std::string_view noun) const {
  if (item.number >= size())
    refuse_file(
        item.path,
        fmt::format("there is no item #{}: item numbers begin at 0, and the number of {} is {}",
                    item.number, noun, size()));
  return (*this)[item.number];
}

const IdxFile& IdxFiles::open(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  return found != files_.end() ? found->second
                               : files_.emplace(path, IdxFile::read(path)).first->second;
}

bool IdxItem::parse(std::string_view line, IdxItem& into) {
  const std::size_t mark = line.rfind('#');
  if (mark == std::string_view::npos || mark + 1 == line.size()) return false;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + mark + 1, end, into.number);
  into.path = line.substr(0, mark);
  return error == std::errc() && stop == end && into.number >= 0;
}

}  // namespace heed
