#pragma once
/// Text from files, plain or gzip (distinguished by content), checked as it is read. All errors are
/// Error(bad_input), or Error(io) if the disk fails, and name the file by its absolute path.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/files.h"
#include "autograd/base/formats/gzip.h"

namespace heed {

/// Maximum size of a line in a file of sentences; a longer line is an error (text without line
/// ends, or a binary file).
inline constexpr std::size_t max_line_bytes = 1'000'000;  // bytes

/// The bytes of a file as a stream, unpacked; "-" is standard input.
class TextSource {
 public:
  struct Limits {
    FileReader::Kinds kinds = FileReader::Kinds::files_and_pipes;
    std::uint64_t bytes = UINT64_MAX;  ///< maximum size, packed and unpacked
    bool kept = true;                  ///< the whole content remains in memory (GzipUnpacker)
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
  std::string packed_;  // initially the bytes that identified the file's kind
};

/// Streams the lines of a file, without their ends (\n or \r\n) and without a leading byte-order
/// mark, so that an input of any size needs little memory.
class LineReader {
 public:
  explicit LineReader(const std::string& path)
      : LineReader(path, std::size_t{1} << 26,
                   {FileReader::Kinds::also_devices, UINT64_MAX, false}) {}
  LineReader(const std::string& path, std::size_t max_bytes, const TextSource::Limits& limits)
      : source_(path, limits), max_bytes_(max_bytes) {}

  /// Reads the next line; returns false at the end. Throws for invalid UTF-8, a NUL byte and a line
  /// of more than `max_bytes` bytes, each with its line number.
  bool next(std::string& line);
  /// The number of the last line that next() read, counted from 1.
  std::int64_t number() const { return number_; }
  /// Whether the input is a terminal, whose user waits for the answer to each line.
  bool terminal() const { return source_.file().terminal(); }

 private:
  TextSource source_;
  std::size_t max_bytes_;
  std::string text_;  // the bytes from begin_ on are read but not yet returned
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

/// The text of a file unchanged, line ends included. Throws for invalid UTF-8 and NUL bytes.
std::string read_text(const std::string& path);

/// Splits a text after every \n; the results are views of the text and include the \n.
std::vector<std::string_view> text_lines(std::string_view text);

}  // namespace heed
