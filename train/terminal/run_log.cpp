#include "train/terminal/run_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>

#include <ctime>

#include "autograd/io/message_text.h"

namespace heed {

namespace {

bool silent = false;

/// The maximum length of a line, in bytes. A value that a received file contains may be of any
/// length.
constexpr std::size_t max_line = 4000;

void print(std::string_view text) {
  std::string all;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find('\n', begin);
    const std::string line = for_terminal(text.substr(begin, end - begin));
    all += (line.size() <= max_line ? line : excerpt(line, max_line)) + '\n';
  }
  write_message(all);
}

}  // namespace

void silence() { silent = true; }

void RunLog::progress(const ProgressState& state) {
  if (!silent) bar_.update(state);
}

void RunLog::log_to(const std::filesystem::path& file) {
  log_ = open_regular(file, O_WRONLY | O_CREAT | O_APPEND);
  log_path_ = file;
}

void RunLog::line(const std::string& text) {
  if (!silent) bar_.note(for_terminal(text));
  log(text);
}

void RunLog::log(const std::string& text) {
  if (log_.get() < 0) return;
  const std::string line =
      fmt::format("{:%F %T}  {}\n", fmt::localtime(std::time(nullptr)), shown(text, max_line));
  write_all(log_.get(), as_bytes(line), log_path_);
}

void print_message(std::string_view line) {
  if (!silent) print(line);
}

void print_note(std::string_view line) { print_message(fmt::format("heed: {}", line)); }

void print_text(std::string_view text) { fmt::print("{}", for_terminal(text)); }

void print_error(std::string_view line) { print(fmt::format("heed: {}", line)); }

}  // namespace heed
