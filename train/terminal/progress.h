#pragma once
/// Shows the progress of a long job: on a terminal, in one line that is redrawn; otherwise, in a
/// new line every few seconds.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The capabilities of the output.
struct ProgressStyle {
  bool terminal = false;  ///< a terminal, whose lines can be redrawn
  bool color = false;
  bool unicode = false;  ///< false: ASCII only
  int width = 80;        ///< columns
};

/// The style for a file descriptor in this environment: NO_COLOR (no-color.org), TERM, LC_ALL,
/// LC_CTYPE, LANG.
ProgressStyle detect_style(int descriptor);

struct ProgressState {
  std::int64_t step = 0;
  std::int64_t total = 0;  ///< 0: unknown
  std::optional<double> loss{};
  std::optional<double> learning_rate{};
  std::optional<double> tokens_per_second{};
  std::optional<double> seconds_left{};  ///< nullopt: estimated from the time of the previous steps
  std::span<const double> curve{};       ///< earlier losses; drawn if the line is wide enough
};

std::string format_duration(double seconds);  ///< "0:07", "12:34", "3:05:09", "2d 04:10"
std::string format_quantity(double value);    ///< "950", "12.3k", "4.56M"
/// A bar of `cells` columns, of which the share `fraction` is filled.
std::string format_bar(double fraction, int cells, const ProgressStyle& style);
/// "▇▅▄▂▁▁": a block for each value, scaled between the minimum and the maximum. Values that are
/// not finite leave a gap.
std::string format_sparkline(std::span<const double> values);
/// "train ━━━━━╸────  42%  4200/10000  loss 2.345  12.3k tok/s  lr 8.8e-04  ETA 3:05"; the least
/// important fields are dropped until the line fits the width. With Unicode, a wide line also
/// contains a sparkline of the last losses.
std::string format_bar_line(std::string_view label, const ProgressState& state,
                            const ProgressStyle& style);
/// The state as a line without a bar, for a log: "train step 4200/10000 (42%)  loss 2.345".
std::string format_plain_line(std::string_view label, const ProgressState& state);

/// Draws the progress of a job; the destructor removes the bar.
class ProgressBar {
 public:
  using Sink = std::function<void(std::string_view)>;
  using Clock = std::function<double()>;  ///< seconds

  /// Draws on stderr.
  explicit ProgressBar(std::string label);
  /// Draws into a sink with a given clock, for tests. Without a terminal, lines are at least
  /// `plain_seconds` apart.
  ProgressBar(std::string label, ProgressStyle style, Sink sink, Clock clock,
              double plain_seconds = 10.0);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows a state if an interval has passed since the last one shown. The first state and a state
  /// whose step has reached `total` are always shown.
  void update(ProgressState state);
  /// Adds a loss to the sparkline.
  void add_to_curve(double loss);
  /// Writes a permanent line above the bar.
  void note(std::string_view line);
  /// Removes the bar.
  void finish();

 private:
  std::string label_;
  ProgressStyle style_;
  bool watch_width_ = false;  // true: query the terminal's width at each update
  Sink sink_;
  Clock clock_;
  double interval_;  // seconds between updates
  double begun_;
  std::optional<double> shown_at_;
  std::string drawn_;          // the bar as currently shown
  std::vector<double> curve_;  // the last losses
};

}  // namespace heed
