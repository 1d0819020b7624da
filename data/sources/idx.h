#pragma once
/// IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist): unsigned bytes in one to four
/// dimensions, plain or compressed with gzip.
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A line that names an item of an IDX file: "FILE#17"; numbers begin at 0.
struct IdxItem {
  std::string path;
  std::int64_t number = 0;
  std::string text() const { return path + "#" + std::to_string(number); }
  /// Returns whether a line has that form. If so, `into` contains its parts; otherwise, `into` is
  /// unspecified.
  static bool parse(std::string_view line, IdxItem& into);
};

class IdxFile {
 public:
  /// Throws Error(bad_input) if the file is missing or not an IDX file of bytes, or if its size
  /// does not match its dimensions.
  static IdxFile read(const std::string& path);
  /// Whether a file begins like an IDX file. Throws Error(bad_input) if it cannot be read.
  static bool is(const std::string& path);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const { return shape_.front(); }
  /// Item i along the first dimension.
  std::span<const std::uint8_t> operator[](std::int64_t i) const;
  /// The item with number item.number. Throws Error(bad_input) if it does not exist; the message
  /// contains `noun` ("images").
  std::span<const std::uint8_t> item(const IdxItem& item, std::string_view noun) const;

 private:
  std::vector<std::int64_t> shape_;
  std::string bytes_;
  std::size_t begin_ = 0, item_ = 1;
};

/// A cache of IDX files, each read once. Thread-safe.
class IdxFiles {
 public:
  const IdxFile& open(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, IdxFile> files_;
};

}  // namespace heed
