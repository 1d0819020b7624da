#include "train/commands/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "autograd/base/error.h"
#include "autograd/base/gzip.h"
#include "autograd/base/lines.h"
#include "autograd/base/utf8.h"

namespace heed {

namespace {

constexpr std::size_t piece = std::size_t{1} << 16;

/// A missing or unreadable file is bad input; anything else is the system's trouble.
FileDescriptor open_input(const std::string& path) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number >= 0) return FileDescriptor(number);
  const bool own_fault = errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == ELOOP ||
                         errno == ENAMETOOLONG;
  throw Error(own_fault ? Exit::bad_input : Exit::io,
              fmt::format("{}: {}", shown_path(path),
                          errno == ENOENT ? "no such file" : std::strerror(errno)));
}

}  // namespace

/// gzip (RFC 1952) unpacked as it comes; a file may hold several members, one after the other.
struct LineReader::Unpacker {
  z_stream stream{};
  std::string packed;
  bool within = false;  // a member
  Unpacker() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw Error(Exit::io, "gzip: no memory to unpack");
  }
  ~Unpacker() { inflateEnd(&stream); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// Unpacks all of `packed` into `text`; false if it is damaged.
  bool unpack(std::string& text) {
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    bool full = false;  // output may wait inside zlib
    while (stream.avail_in > 0 || full) {
      const std::size_t before = text.size();
      text.resize(before + 4 * piece);
      stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream.avail_out = 4 * piece;
      within = true;
      const int status = inflate(&stream, Z_NO_FLUSH);
      full = stream.avail_out == 0;
      text.resize(text.size() - stream.avail_out);
      if (status == Z_STREAM_END) {
        within = full = false;
        inflateReset(&stream);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return false;
      }
    }
    packed.clear();
    return true;
  }
};

LineReader::LineReader(std::string path) : path_(std::move(path)) {
  if (path_ != "-") file_ = open_input(path_);
  // One byte that cannot begin a gzip file settles it: somebody may be typing.
  while (text_.size() < 2 && (text_.empty() || is_gzip(text_ + "\x8b")) && read_more(text_)) {
  }
  if (is_gzip(text_)) {
    unpacker_ = std::make_unique<Unpacker>();
    unpacker_->packed = std::move(text_);
    text_.clear();
    if (!unpacker_->unpack(text_))
      throw Error(Exit::bad_input, shown_path(path_) + ": damaged gzip file");
  }
}

LineReader::~LineReader() = default;

int LineReader::descriptor() const { return path_ == "-" ? STDIN_FILENO : file_.get(); }

bool LineReader::terminal() const { return isatty(descriptor()) == 1; }

bool LineReader::read_more(std::string& into) {
  const std::size_t before = into.size();
  into.resize(before + piece);
  ssize_t got = 0;
  do {
    got = ::read(descriptor(), into.data() + before, piece);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  into.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) {
    throw Error(error == EISDIR ? Exit::bad_input : Exit::io,
                fmt::format("{}: {}", shown_path(path_),
                            error == EISDIR ? "is a folder, not a file" : std::strerror(error)));
  }
  return got > 0;
}

bool LineReader::more_text() {
  text_.erase(0, begin_);
  begin_ = 0;
  if (!unpacker_) return read_more(text_);
  if (!read_more(unpacker_->packed)) {
    if (unpacker_->within)
      throw Error(Exit::bad_input, shown_path(path_) + ": the gzip file is cut short");
    return false;
  }
  if (!unpacker_->unpack(text_))
    throw Error(Exit::bad_input, shown_path(path_) + ": damaged gzip file");
  return true;
}

bool LineReader::next(std::string& line) {
  std::size_t looked = 0;  // bytes from begin_ on that hold no newline
  std::size_t newline = std::string::npos;
  for (;;) {
    newline = text_.find('\n', begin_ + looked);
    if (newline != std::string::npos) break;
    looked = text_.size() - begin_;
    if (looked > longest_line || !more_text()) break;
  }
  const bool whole = newline != std::string::npos;
  if (!whole && begin_ == text_.size()) return false;
  ++number_;
  line.assign(text_, begin_, whole ? newline - begin_ : std::string::npos);
  begin_ = whole ? newline + 1 : text_.size();
  if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.ends_with('\r')) line.pop_back();
  check(line);
  return true;
}

void LineReader::check(const std::string& line) const {
  const auto refuse = [&](const std::string& what) {
    throw Error(Exit::bad_input, fmt::format("{}:{}: {}", shown_path(path_), number_, what));
  };
  if (line.size() > longest_line) refuse(fmt::format("a line of more than {} bytes", longest_line));
  if (const auto at = invalid_utf8(line); at != std::string::npos) {
    refuse(fmt::format("invalid UTF-8 at byte {} of the line (0x{:02X})", at + 1,
                       static_cast<unsigned char>(line[at])));
  }
  if (const auto at = line.find('\0'); at != std::string::npos)
    refuse(fmt::format("NUL byte at byte {} of the line", at + 1));
}

}  // namespace heed
