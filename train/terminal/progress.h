#pragma once
/// Shows the progress of a long job: on a terminal, in one line that is redrawn; otherwise, in new
/// lines, normally at least 10 s apart.
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

/// The style for a file descriptor. It also depends on the environment variables NO_COLOR
/// (no-color.org), TERM, LC_ALL, LC_CTYPE and LANG.
ProgressStyle detect_style(int descriptor);

/// Writes messages or progress to stderr. Write errors are ignored, because they must not stop
/// training.
void write_message(std::string_view text);
/// Makes write_message call `write`, also on other threads. `write` throws nothing.
void write_messages_with(void (*write)(std::string_view text));

struct ProgressState {
  std::int64_t step = 0;
  std::int64_t total = 0;  ///< 0: unknown
  std::optional<double> loss{};
  std::optional<double> learning_rate{};
  std::optional<double> tokens_per_second{};
  std::optional<double> seconds_left{};  ///< nullopt: ProgressBar estimates it if `total` is known
  std::span<const double> curve{};       ///< values of the sparkline; set by ProgressBar
  std::string_view unit = "tokens";      ///< what tokens_per_second counts (predictions_of)
  std::string_view loss_name = "loss";
};

/// "0:07", "12:34", "3:05:09"; from one day on, days, hours and minutes: "2d 04:10". "?" for a
/// negative number, NaN, or more than 1e9 seconds.
std::string format_duration(double seconds);
/// "950", "12.3k", "4.56M"; "?" for NaN and infinity.
std::string format_quantity(double value);
/// A bar of `cells` columns, of which the share `fraction`, clamped to [0, 1], is filled. NaN and
/// infinity count as 0.
std::string format_bar(double fraction, int cells, const ProgressStyle& style);
/// "█▆▄▂▁▁": a block for each value, scaled between the minimum and the maximum. Values that are
/// not finite leave a gap.
std::string format_sparkline(std::span<const double> values);
/// "train  ━━━━──────   42%  4200/10000  loss 2.3457  12.3k tok/s  lr 8.80e-04  ETA 3:05". Drops the
/// least important fields until the line is shorter than the width. With Unicode, a wide line also
/// contains a sparkline of up to 12 recent losses.
std::string format_bar_line(std::string_view label, const ProgressState& state,
                            const ProgressStyle& style);
/// The state as a line without a bar, for a log: "train step 4200/10000 (42%)  loss 2.3457".
std::string format_plain_line(std::string_view label, const ProgressState& state);

/// Draws the progress of a job; the destructor removes the bar.
class ProgressBar {
 public:
  using Sink = std::function<void(std::string_view)>;
  using Clock = std::function<double()>;  ///< seconds

  /// Draws to stderr.
  explicit ProgressBar(std::string label);
  /// Draws to a sink with a given clock, for tests. Without a terminal, lines are at least
  /// `plain_seconds` apart; only the line of the last step may follow sooner.
  ProgressBar(std::string label, ProgressStyle style, Sink sink, Clock clock,
              double plain_seconds = 10.0);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows the state unless a state was shown less than 0.1 s ago (without a terminal, less than
  /// `plain_seconds`). The first state and a state whose step has reached a known `total` are
  /// always shown.
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
  bool watch_width_ = false;  // true: query the terminal's width before each drawing
  Sink sink_;
  Clock clock_;
  double interval_;  // minimum number of seconds between two states shown
  double begun_;
  std::optional<double> shown_at_;
  std::string drawn_;          // the line as currently shown; empty: none
  std::vector<double> curve_;  // the last losses, at most 12
};

}  // namespace heed
