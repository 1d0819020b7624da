#pragma once
/// The lines of a file one after the other, so that an input of any size needs little memory.
#include <cstdint>
#include <memory>
#include <string>

#include "autograd/base/files.h"

namespace heed {

/// Plain text or gzip, told apart by content; "-" is standard input. The rules are those of
/// autograd/base/lines.h (no NUL, valid UTF-8, a leading byte-order mark and \r before \n are dropped), but
/// lines may be much longer.
class LineReader {
 public:
  static constexpr std::size_t longest_line = std::size_t{1} << 26;  ///< bytes

  /// Throws Error(bad_input) where the file cannot be opened.
  explicit LineReader(std::string path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. Throws Error(bad_input), naming file and line, for what is no line of text
  /// or a damaged gzip file, and Error(io) where reading fails.
  bool next(std::string& line);
  std::int64_t number() const { return number_; }  ///< of the line that next() gave, from 1
  /// Somebody types at a terminal, and waits for the answer to each line.
  bool terminal() const;

 private:
  struct Unpacker;
  int descriptor() const;
  bool read_more(std::string& into);  ///< bytes as they come; false at the end
  bool more_text();
  void check(const std::string& line) const;

  std::string path_;
  FileDescriptor file_;  ///< not used for standard input, which stays open
  std::unique_ptr<Unpacker> unpacker_;
  std::string text_;  ///< read but not yet handed out, from begin_ on
  std::size_t begin_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace heed
