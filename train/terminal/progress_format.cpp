#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "train/terminal/progress.h"

namespace heed {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kCyan = "\x1b[36m",
                           kReset = "\x1b[0m";
constexpr int kNarrowestBar = 10, kWidestBar = 30;  // columns

/// Part of a line: its text, its columns, and its drop priority (the highest is dropped first).
struct Field {
  std::string text;
  int columns = 0;
  int dispensable = 0;
};

double fraction_of(const ProgressState& state) {
  return state.total <= 0
             ? 0.0
             : std::clamp(static_cast<double>(state.step) / static_cast<double>(state.total), 0.0,
                          1.0);
}

/// Never "100%" before the end.
std::string percent(const ProgressState& state) {
  return fmt::format("{}%", static_cast<int>(std::floor(100.0 * fraction_of(state))));
}

std::string steps(const ProgressState& state) {
  return state.total > 0 ? fmt::format("{}/{}", state.step, state.total)
                         : fmt::format("{}", state.step);
}

std::string loss(const ProgressState& state) { return fmt::format("loss {:.4f}", *state.loss); }
std::string rate(const ProgressState& state) {
  return fmt::format("{} tok/s", format_quantity(*state.tokens_per_second));
}
std::string learning_rate(const ProgressState& state) {
  return fmt::format("lr {:.2e}", *state.learning_rate);
}
std::string time_left(const ProgressState& state) {
  return fmt::format("ETA {}", format_duration(*state.seconds_left));
}

int columns_of(const std::vector<Field>& fields, std::string_view label) {
  int columns = static_cast<int>(label.size());
  for (const Field& field : fields) columns += 2 + field.columns;
  return columns;
}

}  // namespace

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

std::string format_bar_line(std::string_view label, const ProgressState& state,
                            const ProgressStyle& style) {
  std::vector<Field> fields;
  const auto add = [&](const std::string& text, int dispensable) {
    fields.push_back({text, static_cast<int>(text.size()), dispensable});
  };
  if (state.total > 0) {
    fields.push_back({"", kNarrowestBar, 3});  // the bar, drawn when its width is known
    add(fmt::format("{:>4}", percent(state)), 0);
  }
  add(steps(state), state.total > 0 ? 4 : 0);
  if (state.loss) add(loss(state), 1);
  if (state.tokens_per_second) add(rate(state), 5);
  if (state.learning_rate) add(learning_rate(state), 6);
  if (state.seconds_left) add(time_left(state), 2);

  const int room = style.width - 1;  // the last column makes some terminals wrap
  while (!fields.empty() && columns_of(fields, label) > room) {
    const auto least = std::max_element(
        fields.begin(), fields.end(),
        [](const auto& a, const auto& b) { return a.dispensable < b.dispensable; });
    fields.erase(least);
  }
  std::string line = style.color ? fmt::format("{}{}{}", kBold, label, kReset) : std::string(label);
  if (fields.empty())
    return std::string(label.substr(0, static_cast<std::size_t>(std::max(room, 0))));
  const int spare = room - columns_of(fields, label);
  for (const Field& field : fields) {
    line += "  ";
    line += field.text.empty()
                ? format_bar(fraction_of(state), std::min(kNarrowestBar + spare, kWidestBar), style)
                : field.text;
  }
  return line;
}

std::string format_plain_line(std::string_view label, const ProgressState& state) {
  std::string line = fmt::format("{} step {}", label, steps(state));
  if (state.total > 0) line += fmt::format(" ({})", percent(state));
  if (state.loss) line += "  " + loss(state);
  if (state.tokens_per_second) line += "  " + rate(state);
  if (state.learning_rate) line += "  " + learning_rate(state);
  if (state.seconds_left) line += "  " + time_left(state);
  return line;
}

}  // namespace heed
