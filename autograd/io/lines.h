#pragma once
/// Text from files, plain or gzip (distinguished by content). Reading throws Error(bad_input) for a
/// file that is missing, unreadable, damaged or too long, and Error(io) for failures of the system.
/// Messages name a file by its absolute path.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/io/files.h"
#include "autograd/io/formats/gzip.h"

namespace heed {

/// Maximum size in bytes of a line in a file of sentences. A longer line is an error: the file is
/// probably binary or lacks line endings.
inline constexpr std::size_t max_line_bytes = 1'000'000;

/// The bytes of a file as a stream, unpacked if the file is in gzip format; "-" is standard input.
class TextSource {
 public:
  struct Limits {
    FileReader::Kinds kinds = FileReader::Kinds::files_and_pipes;
    std::uint64_t bytes = UINT64_MAX;  ///< maximum size of the file and of its unpacked content
    bool kept = true;  ///< whether the caller keeps the whole content in memory (GzipUnpacker)
  };
  /// Waits for the first bytes. Throws if the file is missing, not readable, too long, or of a kind
  /// that is not permitted.
  TextSource(const std::string& path, const Limits& limits);

  const FileReader& file() const { return file_; }
  /// Appends the next bytes; returns false at the end. Throws if gzip data are damaged or
  /// truncated, or if the limit is exceeded.
  bool read(std::string& into);

 private:
  bool read_raw(std::string& into);
  void check_size(std::uint64_t size) const;

  FileReader file_;
  std::uint64_t limit_, taken_ = 0;  // bytes
  std::unique_ptr<GzipUnpacker> unpacker_;
  std::string packed_;  // read but not yet unpacked, initially the bytes that is_gzip examined
};

/// Streams the lines of a file, so that an input of any size needs little memory. A line excludes
/// its line ending (\n or \r\n), and the first line excludes a byte-order mark.
class LineReader {
 public:
  /// Accepts regular files, pipes, devices and "-", with lines of up to 64 MiB.
  explicit LineReader(const std::string& path)
      : LineReader(path, std::size_t{1} << 26,
                   {FileReader::Kinds::also_devices, UINT64_MAX, false}) {}
  LineReader(const std::string& path, std::size_t max_bytes, const TextSource::Limits& limits)
      : source_(path, limits), max_bytes_(max_bytes) {}

  /// Reads the next line; returns false at the end. Throws, with the line number, for invalid
  /// UTF-8, for a NUL byte and for a line of more than `max_bytes` bytes.
  bool next(std::string& line);
  /// The number of the last line that next() read, counted from 1.
  std::int64_t number() const { return number_; }
  /// Whether the input is a terminal, whose user waits for the answer to each line.
  bool terminal() const { return source_.file().terminal(); }

 private:
  TextSource source_;
  std::size_t max_bytes_;
  std::string text_;  // the bytes from begin_ on have not yet been returned
  std::size_t begin_ = 0;
  std::int64_t number_ = 0;
};

/// A whole file, unpacked, without a leading byte-order mark; "-" is standard input. Throws as
/// TextSource does.
std::string read_file(const std::string& path, std::uint64_t limit = UINT64_MAX);

/// All lines of a file, or of several in sequence (LineReader), each of at most max_line_bytes
/// bytes. An empty file has no lines.
std::vector<std::string> read_lines(const std::string& path, std::uint64_t limit = UINT64_MAX);
std::vector<std::string> read_lines(const std::vector<std::string>& paths);

/// As read_file, but also throws, with the line number, for invalid UTF-8 and NUL bytes.
std::string read_text(const std::string& path);

/// Splits a text after every \n; the results are views of the text and include the \n.
std::vector<std::string_view> text_lines(std::string_view text);

}  // namespace heed
