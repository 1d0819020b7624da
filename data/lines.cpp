#include "data/lines.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "autograd/error.h"
#include "data/utf8.h"

namespace heed {
namespace {

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

GzFile open(const std::string& path) {
  if (path == "-") {
    const int copy = dup(STDIN_FILENO);  // so that closing leaves standard input open
    return GzFile(copy < 0 ? nullptr : gzdopen(copy, "rb"));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(Exit::bad_input, fmt::format("{}: is a folder, not a file", shown_path(path)));
  }
  errno = 0;
  return GzFile(gzopen(path.c_str(), "rb"));
}

[[noreturn]] void refuse(const GzFile& file, const std::string& path) {
  int code = Z_OK;
  const std::string detail = gzerror(file.get(), &code);
  if (code == Z_ERRNO) {
    throw Error(Exit::io, fmt::format("{}: {}", shown_path(path), std::strerror(errno)));
  }
  if (code == Z_MEM_ERROR) throw Error(Exit::io, shown_path(path) + ": out of memory");
  // zlib's own name for a stream that ends too early is "unexpected end of file".
  throw Error(Exit::bad_input,
              code == Z_BUF_ERROR
                  ? shown_path(path) + ": the gzip file is cut short"
                  : fmt::format("{}: damaged gzip file ({})", shown_path(path), detail));
}

void check_line(std::string_view line, const std::string& path, std::size_t number) {
  if (const auto at = invalid_utf8(line); at != std::string_view::npos) {
    throw Error(
        Exit::bad_input,
        fmt::format("{}:{}: invalid UTF-8 at byte {} of the line (0x{:02X})", shown_path(path),
                    number, at + 1, static_cast<unsigned char>(line[at])));
  }
  if (const auto at = line.find('\0'); at != std::string_view::npos) {
    throw Error(Exit::bad_input, fmt::format("{}:{}: NUL byte at byte {} of the line",
                                             shown_path(path), number, at + 1));
  }
}

/// Calls visit(line with its end, number from 1) for every line.
template <class Visit>
void each_line(std::string_view text, Visit visit) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    visit(text.substr(at, end - at), ++number);
    at = end;
  }
}

}  // namespace

std::string shown_path(const std::string& path) {
  if (path == "-") return "standard input";
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  return failed ? path : absolute.lexically_normal().string();
}

std::string read_file(const std::string& path) {
  const GzFile file = open(path);
  if (!file) {
    const int cause = errno;
    throw Error(
        cause == 0 || cause == ENOMEM ? Exit::io : Exit::bad_input,
        fmt::format("{}: {}", shown_path(path),
                    cause == ENOENT ? "no such file" : std::strerror(cause ? cause : ENOMEM)));
  }
  constexpr unsigned chunk = 1u << 18;
  gzbuffer(file.get(), chunk);
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + chunk);
    const int got = gzread(file.get(), text.data() + before, chunk);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0) refuse(file, path);
    if (got == 0) break;
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END)
    refuse(file, path);  // cut short: read without complaint
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > longest_line) {
      throw Error(Exit::bad_input,
                  fmt::format("{}:{}: a line of {} bytes; at most {} are taken for a sentence",
                              shown_path(path), number, line.size(), longest_line));
    }
    check_line(line, path, number);
    lines.emplace_back(line);
  });
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
  each_line(text,
            [&](std::string_view line, std::size_t number) { check_line(line, path, number); });
  return text;
}

std::vector<std::string> text_lines(std::string_view text) {
  std::vector<std::string> lines;
  each_line(text, [&](std::string_view line, std::size_t) { lines.emplace_back(line); });
  return lines;
}

}  // namespace heed
