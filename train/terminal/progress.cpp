#include "train/terminal/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "autograd/base/clock.h"
#include "autograd/io/files.h"
#include "autograd/io/utf8.h"

namespace heed {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kCyan = "\x1b[36m",
                           kReset = "\x1b[0m";
constexpr int kMinBar = 10, kMaxBar = 30;  // columns
constexpr std::size_t kCurve = 12;         // maximum number of columns of the sparkline

/// Part of a progress line.
struct ShownField {
  std::string text;       ///< empty: the bar, drawn when its width is known
  int drop_priority = 0;  ///< the field with the maximum is dropped first
};

double fraction_of(const ProgressState& state) {
  return state.total <= 0
             ? 0.0
             : std::clamp(static_cast<double>(state.step) / static_cast<double>(state.total), 0.0,
                          1.0);
}

/// The percentage, rounded down, so that "100%" appears only at the end.
std::string percent(const ProgressState& state) {
  return fmt::format("{}%", static_cast<int>(std::floor(100.0 * fraction_of(state))));
}

std::string steps(const ProgressState& state) {
  return state.total > 0 ? fmt::format("{}/{}", state.step, state.total)
                         : fmt::format("{}", state.step);
}

/// The values of the state and, if it is not empty, the sparkline.
std::vector<ShownField> values_of(const ProgressState& state, const std::string& sparkline) {
  std::vector<ShownField> fields;
  if (state.loss) fields.push_back({fmt::format("{} {:.4f}", state.loss_name, *state.loss), 1});
  if (!sparkline.empty()) fields.push_back({sparkline, 7});
  if (state.tokens_per_second)
    fields.push_back({fmt::format("{} {}/s", format_quantity(*state.tokens_per_second),
                                  state.unit == "tokens" ? "tok" : state.unit),
                      5});
  if (state.learning_rate) fields.push_back({fmt::format("lr {:.2e}", *state.learning_rate), 6});
  if (state.seconds_left) fields.push_back({"ETA " + format_duration(*state.seconds_left), 2});
  return fields;
}

int columns_of(const std::vector<ShownField>& fields, std::string_view label) {
  int columns = static_cast<int>(label.size());
  for (const ShownField& field : fields)
    columns += 2 + (field.text.empty() ? kMinBar : static_cast<int>(character_count(field.text)));
  return columns;
}

constexpr double kRedrawSeconds = 0.1;
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
  return ::strcasestr(locale.c_str(), "utf-8") || ::strcasestr(locale.c_str(), "utf8");
}

int terminal_width(int descriptor) {
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(STDERR_FILENO, text.data(), text.size()); });
    if (written <= 0) return;
    text.remove_prefix(written);
  }
}

std::atomic<void (*)(std::string_view)> write_function = write_to_stderr;

}  // namespace

void write_message(std::string_view text) { write_function.load()(text); }
void write_messages_with(void (*write)(std::string_view text)) { write_function = write; }

ProgressStyle detect_style(int descriptor) {
  ProgressStyle style;
  const std::string terminal = environment("TERM");
  style.terminal = ::isatty(descriptor) == 1 && !terminal.empty() && terminal != "dumb";
  style.color = style.terminal && environment("NO_COLOR").empty();
  style.unicode = locale_is_utf8();
  if (style.terminal) style.width = terminal_width(descriptor);
  return style;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_quantity(double value) {
  constexpr std::array<std::string_view, 4> units = {"", "k", "M", "G"};
  if (!std::isfinite(value)) return "?";
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000.0;
    ++unit;
  }
  const int decimals = unit == 0 || std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, decimals, units[unit]);
}

std::string format_bar(double fraction, int cells, const ProgressStyle& style) {
  cells = std::max(cells, 0);
  if (!std::isfinite(fraction)) fraction = 0.0;
  const int halves = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 2.0 * cells));
  const bool half = style.unicode && halves % 2 == 1;
  std::string full, empty;
  for (int i = 0; i < halves / 2; ++i) full += style.unicode ? "━" : "#";
  if (half) full += "╸";
  for (int i = halves / 2 + half; i < cells; ++i) empty += style.unicode ? "─" : "-";
  if (!style.color) return full + empty;
  return fmt::format("{}{}{}{}{}{}", kCyan, full, kReset, kDim, empty, kReset);
}

std::string format_sparkline(std::span<const double> values) {
  constexpr std::array<std::string_view, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  std::string line;
  for (const double v : values) {
    const double height = high > low ? v / (high - low) - low / (high - low) : 0;
    const double block = std::floor(height * static_cast<double>(blocks.size()));
    line += std::isfinite(v) ? blocks[static_cast<std::size_t>(std::clamp(block, 0.0, 7.0))] : " ";
  }
  return line;
}

std::string format_bar_line(std::string_view label, const ProgressState& state,
                            const ProgressStyle& style) {
  std::vector<ShownField> fields;
  if (state.total > 0) fields = {{"", 3}, {fmt::format("{:>4}", percent(state)), 0}};
  fields.push_back({steps(state), state.total > 0 ? 4 : 0});
  const auto curve = state.curve.last(std::min(state.curve.size(), kCurve));
  const bool has_curve = style.unicode && curve.size() > 1;
  std::ranges::copy(values_of(state, has_curve ? format_sparkline(curve) : ""),
                    std::back_inserter(fields));

  const int room = style.width - 1;  // some terminals wrap after the last column
  while (!fields.empty() && columns_of(fields, label) > room)
    fields.erase(std::ranges::max_element(fields, {}, &ShownField::drop_priority));
  std::string line = style.color ? fmt::format("{}{}{}", kBold, label, kReset) : std::string(label);
  if (fields.empty())
    return std::string(label.substr(0, static_cast<std::size_t>(std::max(room, 0))));
  const int spare = room - columns_of(fields, label);
  for (const ShownField& field : fields) {
    line += "  ";
    line += field.text.empty()
                ? format_bar(fraction_of(state), std::min(kMinBar + spare, kMaxBar), style)
                : field.text;
  }
  return line;
}

std::string format_plain_line(std::string_view label, const ProgressState& state) {
  std::string line = fmt::format("{} step {}", label, steps(state));
  if (state.total > 0) line += fmt::format(" ({})", percent(state));
  for (const ShownField& field : values_of(state, "")) line += "  " + field.text;
  return line;
}

ProgressBar::ProgressBar(std::string label)
    : ProgressBar(std::move(label), detect_style(STDERR_FILENO), write_message, seconds_now) {
  watch_width_ = style_.terminal;
}

ProgressBar::ProgressBar(std::string label, ProgressStyle style, Sink sink, Clock clock,
                         double plain_seconds)
    : label_(std::move(label)),
      style_(style),
      sink_(std::move(sink)),
      clock_(std::move(clock)),
      interval_(style.terminal ? kRedrawSeconds : plain_seconds),
      begun_(clock_()) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(ProgressState state) {
  const double now = clock_();
  if (!state.seconds_left && state.step > 0 && state.total > 0) {
    state.seconds_left = (now - begun_) / static_cast<double>(state.step) *
                         static_cast<double>(std::max<std::int64_t>(state.total - state.step, 0));
  }
  const bool at_end = state.total > 0 && state.step >= state.total;
  if (shown_at_ && now - *shown_at_ < interval_ && !at_end) return;
  shown_at_ = now;
  if (!style_.terminal) {
    sink_(format_plain_line(label_, state) + "\n");
    return;
  }
  if (watch_width_) style_.width = terminal_width(STDERR_FILENO);
  state.curve = curve_;
  drawn_ = format_bar_line(label_, state, style_);
  sink_(std::string(kClearLine) + drawn_);
}

void ProgressBar::add_to_curve(double loss) {
  if (curve_.size() == kCurve) curve_.erase(curve_.begin());
  curve_.push_back(loss);
}

void ProgressBar::note(std::string_view line) {
  std::string text = drawn_.empty() ? "" : std::string(kClearLine);
  text.append(line).append("\n").append(drawn_);
  sink_(text);
}

void ProgressBar::finish() {
  if (!drawn_.empty()) sink_(kClearLine);
  drawn_.clear();
}

}  // namespace heed
