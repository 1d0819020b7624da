#include "train/terminal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "autograd/base/clock.h"
#include "autograd/base/files.h"

namespace heed {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kMemorySeconds = 30.0;  // steps this long ago weigh 1/e in the estimate
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    locale = environment(name);
    if (!locale.empty()) break;
  }
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

int terminal_width(int descriptor) {
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// Write errors are ignored: progress is no reason to stop training.
void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put =
        uninterrupted([&] { return ::write(STDERR_FILENO, text.data(), text.size()); });
    if (put <= 0) return;
    text.remove_prefix(put);
  }
}

}  // namespace

ProgressStyle detect_style(int descriptor) {
  ProgressStyle style;
  const std::string terminal = environment("TERM");
  style.terminal = ::isatty(descriptor) == 1 && !terminal.empty() && terminal != "dumb";
  style.color = style.terminal && environment("NO_COLOR").empty();
  style.unicode = locale_is_utf8();
  if (style.terminal) style.width = terminal_width(descriptor);
  return style;
}

ProgressBar::ProgressBar(std::string label)
    : ProgressBar(std::move(label), detect_style(STDERR_FILENO), write_to_stderr, seconds_now) {
  watch_width_ = style_.terminal;
}

ProgressBar::ProgressBar(std::string label, ProgressStyle style, Sink sink, Clock clock,
                         double plain_seconds)
    : label_(std::move(label)),
      style_(style),
      sink_(std::move(sink)),
      clock_(std::move(clock)),
      interval_(style.terminal ? kRedrawSeconds : plain_seconds) {}

ProgressBar::~ProgressBar() { finish(); }

ProgressState ProgressBar::with_estimate(ProgressState state, double now) {
  if (last_step_ && state.step > *last_step_) {
    const double seconds = now - last_time_;
    const double each = seconds / static_cast<double>(state.step - *last_step_);
    const double weight = 1.0 - std::exp(-seconds / kMemorySeconds);
    // The first interval is the whole estimate.
    seconds_per_step_ =
        seconds_per_step_ ? *seconds_per_step_ + weight * (each - *seconds_per_step_) : each;
  }
  if (!last_step_ || state.step > *last_step_) {
    last_step_ = state.step;
    last_time_ = now;
  }
  if (!state.seconds_left && state.total > 0 && seconds_per_step_)
    state.seconds_left = *seconds_per_step_ *
                         static_cast<double>(std::max<std::int64_t>(state.total - state.step, 0));
  return state;
}

void ProgressBar::update(const ProgressState& given) {
  const std::lock_guard lock(mutex_);
  const double now = clock_();
  const ProgressState state = with_estimate(given, now);
  const bool at_end = state.total > 0 && state.step >= state.total;
  if (shown_at_ && now - *shown_at_ < interval_ && !at_end) return;
  shown_at_ = now;
  if (!style_.terminal) {
    sink_(format_plain_line(label_, state) + "\n");
    return;
  }
  if (watch_width_) style_.width = terminal_width(STDERR_FILENO);
  drawn_ = format_bar_line(label_, state, style_);
  sink_(std::string(kClearLine) + drawn_);
}

void ProgressBar::note(std::string_view line) {
  const std::lock_guard lock(mutex_);
  std::string text = drawn_.empty() ? "" : std::string(kClearLine);
  text.append(line).append("\n").append(drawn_);
  sink_(text);
}

void ProgressBar::finish() {
  const std::lock_guard lock(mutex_);
  if (!drawn_.empty()) sink_(kClearLine);
  drawn_.clear();
}

}  // namespace heed
