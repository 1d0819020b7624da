#include "autograd/base/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "autograd/base/error.h"
#include "autograd/base/gzip.h"
#include "autograd/base/uninterrupted.h"
#include "autograd/base/utf8.h"

namespace heed {
namespace {

[[noreturn]] void refuse(const std::string& path, int cause) {
  const bool ours = cause == EIO || cause == ENOMEM || cause == EMFILE || cause == ENFILE;
  throw Error(ours ? Exit::io : Exit::bad_input,
              fmt::format("{}: {}", shown_path(path),
                          cause == ENOENT ? "no such file" : std::strerror(cause)));
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number > STDIN_FILENO) ::close(number);
  }
};

/// The bytes of a file, a pipe or standard input, as they are, if they are at most `limit`.
std::string read_bytes_of(const std::string& path, std::uint64_t limit) {
  const bool standard = path == "-";
  const Descriptor file{standard ? STDIN_FILENO : uninterrupted([&] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  })};
  struct stat about {};
  if (file.number < 0 || ::fstat(file.number, &about) < 0) refuse(path, errno);
  if (S_ISDIR(about.st_mode)) {
    throw Error(Exit::bad_input, fmt::format("{}: is a folder, not a file", shown_path(path)));
  }
  if (!standard && (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode))) {
    throw Error(Exit::bad_input, fmt::format("{}: is a device, not a file", shown_path(path)));
  }
  const auto check_size = [&](std::uint64_t size) {
    if (size <= limit) return;
    throw Error(Exit::bad_input, fmt::format("{}: longer than {} bytes", shown_path(path), limit));
  };
  check_size(static_cast<std::uint64_t>(about.st_size));
  // A byte more than a file has, so that its end is seen; where no size is known, twice as much
  // each time.
  std::string bytes(std::max(static_cast<std::size_t>(about.st_size) + 1, std::size_t{4096}), '\0');
  for (std::size_t filled = 0;;) {
    if (filled == bytes.size()) bytes.resize(2 * filled);
    const ssize_t got = uninterrupted(
        [&] { return ::read(file.number, bytes.data() + filled, bytes.size() - filled); });
    if (got < 0) refuse(path, errno);
    filled += static_cast<std::size_t>(got);
    check_size(filled);
    if (got > 0) continue;
    bytes.resize(filled);
    return bytes;
  }
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

std::string read_file(const std::string& path, std::uint64_t limit) {
  std::string text = read_bytes_of(path, limit);
  if (is_gzip(text)) text = unpack_gzip(text, limit, shown_path(path));
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

std::vector<std::string> read_lines(const std::string& path, std::uint64_t limit) {
  const std::string text = read_file(path, limit);
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
