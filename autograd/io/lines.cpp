#include "autograd/io/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"

namespace heed {
namespace {

constexpr std::size_t piece = std::size_t{1} << 16;  // bytes read at a time
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void check_line(std::string_view line, const std::string& file, std::int64_t number) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}:{}: {}", file, number, what);
  };
  if (const auto at = invalid_utf8(line); at != std::string_view::npos) {
    refuse(fmt::format("invalid UTF-8 at byte {} of the line (0x{:02X})", at + 1,
                       static_cast<unsigned char>(line[at])));
  }
  if (const auto at = line.find('\0'); at != std::string_view::npos)
    refuse(fmt::format("NUL byte at byte {} of the line", at + 1));
}

}  // namespace

// ---- bytes ----------------------------------------------------------------------------------

TextSource::TextSource(const std::string& path, const Limits& limits)
    : file_(path, limits.kinds), limit_(limits.bytes) {
  check_size(file_.size());
  // Waits for a second byte only if the first may begin a gzip file, because the input may be a
  // terminal.
  while (packed_.size() < 2 && (packed_.empty() || is_gzip(packed_ + "\x8b")) &&
         read_raw(packed_)) {
  }
  if (is_gzip(packed_))
    unpacker_ = std::make_unique<GzipUnpacker>(file_.name(), limit_, limits.kept);
}

void TextSource::check_size(std::uint64_t size) const {
  if (size > limit_) throw Error(Exit::bad_input, "{}: longer than {} bytes", file_.name(), limit_);
}

bool TextSource::read_raw(std::string& into) {
  const std::size_t before = into.size();
  into.resize(before + piece);
  const std::size_t got = file_.read_some(std::span(into).subspan(before));
  into.resize(before + got);
  check_size(taken_ += got);
  return got > 0;
}

bool TextSource::read(std::string& into) {
  if (!unpacker_ && packed_.empty()) return read_raw(into);
  if (packed_.empty() && !read_raw(packed_)) {
    if (unpacker_) unpacker_->finish();
    return false;
  }
  unpacker_ ? unpacker_->unpack(packed_, into) : static_cast<void>(into += packed_);
  packed_.clear();
  return true;
}

// ---- lines ----------------------------------------------------------------------------------

bool LineReader::next(std::string& line) {
  std::size_t newline = std::string::npos;
  for (std::size_t looked = 0;;) {  // number of bytes searched, from begin_ on
    newline = text_.find('\n', begin_ + looked);
    if (newline != std::string::npos) break;
    text_.erase(0, begin_);
    begin_ = 0;
    looked = text_.size();
    // The limit excludes the byte-order mark and the \r.
    if (looked > max_bytes_ + byte_order_mark.size() + 1 || !source_.read(text_)) break;
  }
  const bool nothing = text_.empty() || (number_ == 0 && text_ == byte_order_mark);
  if (newline == std::string::npos && nothing) return false;
  const std::size_t end = std::min(newline, text_.size());
  ++number_;
  line.assign(text_, begin_, end - begin_);
  begin_ = std::min(end + 1, text_.size());
  if (number_ == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
  if (line.ends_with('\r')) line.pop_back();
  const std::string& file = source_.file().name();
  if (line.size() > max_bytes_) {
    throw Error(Exit::bad_input, "{}:{}: a line of more than {} bytes", file, number_, max_bytes_);
  }
  check_line(line, file, number_);
  return true;
}

// ---- whole files ----------------------------------------------------------------------------

std::string read_file(const std::string& path, std::uint64_t limit) {
  TextSource source(path, {.bytes = limit});
  std::string text;
  text.reserve(source.file().size() + piece);
  while (source.read(text)) {
  }
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  return text;
}

std::vector<std::string> read_lines(const std::string& path, std::uint64_t limit) {
  LineReader reader(path, max_line_bytes, {.bytes = limit});
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> read_lines(const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  for (const auto& path : paths) {
    auto lines = read_lines(path);
    std::move(lines.begin(), lines.end(), std::back_inserter(all));
  }
  return all;
}

std::string read_text(const std::string& path) {
  std::string text = read_file(path);
  std::int64_t number = 0;
  for (const std::string_view line : text_lines(text)) check_line(line, shown_path(path), ++number);
  return text;
}

std::vector<std::string_view> text_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

}  // namespace heed
