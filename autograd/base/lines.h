#pragma once
/// Text from files, plain or gzip (told apart by content), checked as it is read. All errors are
/// Error(bad_input), or Error(io) where the disk fails, and name the file by its absolute path.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A longer line in a file of sentences is taken for a mistake (a text without line ends, a
/// binary).
inline constexpr std::size_t longest_line = 1'000'000;  // bytes

/// The whole of a file, unpacked, without a leading byte-order mark; "-" is standard input.
/// Throws when it is missing, not readable, not a file, longer than `limit` bytes (packed or
/// unpacked), or a gzip file that is damaged or cut short.
std::string read_file(const std::string& path, std::uint64_t limit = UINT64_MAX);

/// The lines of a file, without their ends (\n or \r\n). Throws for invalid UTF-8, a NUL byte and a
/// line longer than longest_line, each with its line number. An empty file has no lines.
std::vector<std::string> read_lines(const std::string& path, std::uint64_t limit = UINT64_MAX);

/// The text of a file as it stands, line ends included. Throws for invalid UTF-8 and NUL bytes.
std::string read_text(const std::string& path);

/// Lines of several files, one file after the other.
std::vector<std::string> read_lines(const std::vector<std::string>& paths);

/// Cuts a text after every \n; the pieces keep it, so that together they are the text again.
std::vector<std::string> text_lines(std::string_view text);

/// How a file is named in messages: its absolute path, or "standard input" for "-".
std::string shown_path(const std::string& path);

}  // namespace heed
