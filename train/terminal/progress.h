#pragma once
/// The progress of a long job: one line that is redrawn on a terminal, elsewhere one line every few
/// seconds.
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
  bool terminal = false;  ///< lines can be redrawn
  bool color = false;
  bool unicode = false;  ///< otherwise ASCII only
  int width = 80;        ///< columns
};

/// From the file descriptor and the environment: NO_COLOR (no-color.org), TERM, LC_ALL, LC_CTYPE,
/// LANG.
ProgressStyle detect_style(int descriptor);

struct ProgressState {
  std::int64_t step = 0;
  std::int64_t total = 0;  ///< 0: unknown
  std::optional<double> loss{};
  std::optional<double> learning_rate{};
  std::optional<double> tokens_per_second{};
  std::optional<double> seconds_left{};  ///< unset: estimated from the time of the steps so far
  std::span<const double> curve{};       ///< earlier losses; drawn where there is room
};

std::string format_duration(double seconds);  ///< "0:07", "12:34", "3:05:09", "2d 04:10"
std::string format_quantity(double value);    ///< "950", "12.3k", "4.56M"
/// `cells` columns, of which `fraction` are full.
std::string format_bar(double fraction, int cells, const ProgressStyle& style);
/// "▇▅▄▂▁▁": a block for each value, as high as it lies between the lowest and the highest of them.
/// Values that are not finite leave a gap.
std::string format_sparkline(std::span<const double> values);
/// "train ━━━━━╸────  42%  4200/10000  loss 2.345  12.3k tok/s  lr 8.8e-04  ETA 3:05"; the least
/// important fields are dropped until the line fits the width. A wide line of Unicode has a sparkline
/// of the last losses as well.
std::string format_bar_line(std::string_view label, const ProgressState& state,
                            const ProgressStyle& style);
/// The same in words, without a bar, for a log.
std::string format_plain_line(std::string_view label, const ProgressState& state);

/// Draws the progress.
class ProgressBar {
 public:
  using Sink = std::function<void(std::string_view)>;
  using Clock = std::function<double()>;  ///< seconds

  /// On stderr.
  explicit ProgressBar(std::string label);
  /// To any sink, with any clock (for tests). Without a terminal, lines are `plain_seconds` apart.
  ProgressBar(std::string label, ProgressStyle style, Sink sink, Clock clock,
              double plain_seconds = 10.0);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows a state, unless another was shown just before; the first and the last are always shown.
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
  bool watch_width_ = false;  // query the terminal's width each time
  Sink sink_;
  Clock clock_;
  double interval_;  // seconds between updates
  double begun_;
  std::optional<double> shown_at_;
  std::string drawn_;          // the bar as currently shown
  std::vector<double> curve_;  // the last losses
};

}  // namespace heed
