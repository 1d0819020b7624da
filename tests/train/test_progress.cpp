#include "train/terminal/progress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "autograd/io/files.h"
#include "tests/train/support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(progress)

namespace {

const ProgressStyle kAscii{.terminal = true, .color = false, .unicode = false, .width = 100};

ProgressState full_state() { return {4200, 10000, 2.34567, 8.8e-4, 12345.6, 185.0}; }

/// The number of columns of a line: its characters without the colour escape sequences.
int columns(const std::string& line) {
  int count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b')
      i = line.find('m', i);
    else
      count += (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
  }
  return count;
}

/// Collects the output of a progress bar, whose clock the test sets.
struct Screen {
  double now = 0.0;
  std::vector<std::string> written;

  ProgressBar bar(const ProgressStyle& style, double plain_seconds = 10.0) {
    return ProgressBar(
        "train", style, [this](std::string_view text) { written.emplace_back(text); },
        [this] { return now; }, plain_seconds);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(durations_are_formatted_as_minutes_hours_or_days) {
  BOOST_TEST(format_duration(0) == "0:00");
  BOOST_TEST(format_duration(7.4) == "0:07");
  BOOST_TEST(format_duration(59.6) == "1:00");
  BOOST_TEST(format_duration(754) == "12:34");
  BOOST_TEST(format_duration(3 * 3600 + 5 * 60 + 9) == "3:05:09");
  BOOST_TEST(format_duration(2 * 86400 + 4 * 3600 + 10 * 60 + 59) == "2d 04:10");
  BOOST_TEST(format_duration(-1) == "?");
  BOOST_TEST(format_duration(NAN) == "?");
  BOOST_TEST(format_duration(INFINITY) == "?");
}

BOOST_AUTO_TEST_CASE(quantities_are_formatted_with_unit_prefixes) {
  BOOST_TEST(format_quantity(0) == "0");
  BOOST_TEST(format_quantity(950.4) == "950");
  BOOST_TEST(format_quantity(999.4) == "999");
  BOOST_TEST(format_quantity(999.6) == "1.00k");
  BOOST_TEST(format_quantity(12345.6) == "12.3k");
  BOOST_TEST(format_quantity(999'960) == "1.00M");
  BOOST_TEST(format_quantity(4'560'000) == "4.56M");
  BOOST_TEST(format_quantity(5e12) == "5000G");
  BOOST_TEST(format_quantity(NAN) == "?");
}

BOOST_AUTO_TEST_CASE(bar_is_filled_in_proportion_to_the_progress) {
  BOOST_TEST(format_bar(0.0, 10, kAscii) == "----------");
  BOOST_TEST(format_bar(0.42, 10, kAscii) == "####------");
  BOOST_TEST(format_bar(1.0, 10, kAscii) == "##########");
  BOOST_TEST(format_bar(7.0, 3, kAscii) == "###");
  BOOST_TEST(format_bar(-1.0, 3, kAscii) == "---");
  BOOST_TEST(format_bar(NAN, 3, kAscii) == "---");
  BOOST_TEST(format_bar(0.5, 0, kAscii) == "");
  const ProgressStyle unicode{.unicode = true};
  BOOST_TEST(format_bar(0.5, 4, unicode) == "━━──");
  BOOST_TEST(format_bar(0.65, 4, unicode) == "━━╸─");
  const ProgressStyle color{.color = true, .unicode = true};
  BOOST_TEST(contains(format_bar(0.5, 4, color), "\x1b["));
  BOOST_TEST(columns(format_bar(0.65, 4, color)) == 4);
}

BOOST_AUTO_TEST_CASE(progress_line_fits_the_width_of_the_terminal) {
  BOOST_TEST(
      format_bar_line("train", full_state(), kAscii) ==
      "train  ##########---------------   42%  4200/10000  loss 2.3457  12.3k tok/s  lr 8.80e-04 "
      " ETA 3:05");
  for (int width = 1; width < 140; ++width) {
    for (const bool color : {false, true}) {
      const ProgressStyle style{.terminal = true, .color = color, .unicode = true, .width = width};
      BOOST_TEST(columns(format_bar_line("train", full_state(), style)) < width);
    }
  }
  ProgressStyle narrow = kAscii;
  narrow.width = 40;
  BOOST_TEST(format_bar_line("train", full_state(), narrow) ==
             "train   42%  loss 2.3457  ETA 3:05");
}

BOOST_AUTO_TEST_CASE(sparkline_is_scaled_to_the_range_of_its_values) {
  const std::vector<double> falling{8, 7, 6, 5, 4, 3, 2, 1};
  BOOST_TEST(format_sparkline(falling) == "█▇▆▅▄▃▂▁");
  BOOST_TEST(format_sparkline(std::vector<double>{2, NAN, 4, INFINITY, 3}) == "▁ █ ▅");
  BOOST_TEST(format_sparkline(std::vector<double>{3, 3}) == "▁▁");
  BOOST_TEST(format_sparkline(std::vector<double>{-1e308, 1e308, 0}) ==
             "▁▁▁");  // the range overflows
  BOOST_TEST(format_sparkline({}) == "");
}

BOOST_AUTO_TEST_CASE(wide_unicode_line_contains_the_sparkline) {
  const std::vector<double> losses(40, 1.0), one(1, 1.0);
  ProgressState state = full_state();
  state.curve = losses;
  ProgressStyle wide{.terminal = true, .color = false, .unicode = true, .width = 110};
  BOOST_TEST(contains(format_bar_line("train", state, wide), "loss 2.3457  ▁▁▁▁▁▁▁▁▁▁▁▁  12.3k"));
  for (int width = 1; width < 140; ++width) {
    ProgressStyle style = wide;
    style.width = width;
    BOOST_TEST(columns(format_bar_line("train", state, style)) < width);
  }
  wide.width = 80;  // all other fields have priority
  BOOST_TEST(!contains(format_bar_line("train", state, wide), "▁"));
  wide.width = 110;
  wide.unicode = false;
  BOOST_TEST(!contains(format_bar_line("train", state, wide), "▁"));
  BOOST_TEST(!contains(format_plain_line("train", state), "▁"));
  wide.unicode = true;
  state.curve = one;  // a single loss does not form a curve
  BOOST_TEST(!contains(format_bar_line("train", state, wide), "▁"));
}

BOOST_AUTO_TEST_CASE(sparkline_shows_the_last_12_losses) {
  for (const bool terminal : {true, false}) {
    Screen screen;
    ProgressBar bar =
        screen.bar({.terminal = terminal, .color = false, .unicode = true, .width = 120}, 0.0);
    for (int i = 0; i < 20; ++i) bar.add_to_curve(i < 9 ? 2.0 : 1.0);
    bar.add_to_curve(3.0);
    bar.update({.step = 1, .total = 10, .loss = 1.0});
    BOOST_TEST(contains(screen.written.back(), "  ▁▁▁▁▁▁▁▁▁▁▁█") == terminal);
  }
}

BOOST_AUTO_TEST_CASE(unknown_values_are_omitted_from_the_line) {
  BOOST_TEST(format_bar_line("fetch", {.step = 3}, kAscii) == "fetch  3");
  BOOST_TEST(format_plain_line("train", {.step = 3}) == "train step 3");
  BOOST_TEST(format_plain_line("train", {.step = 9999, .total = 10000}) ==
             "train step 9999/10000 (99%)");
  BOOST_TEST(format_plain_line("train", full_state()) ==
             "train step 4200/10000 (42%)  loss 2.3457  12.3k tok/s  lr 8.80e-04  ETA 3:05");
  ProgressState smoothed = full_state();
  smoothed.loss_name = "smoothed loss";
  BOOST_TEST(contains(format_plain_line("train", smoothed), "(42%)  smoothed loss 2.3457  12.3k"));
}

BOOST_AUTO_TEST_CASE(line_on_a_terminal_is_redrawn_at_intervals_of_0_1_s) {
  Screen screen;
  {
    ProgressBar bar = screen.bar(kAscii);
    for (int step = 1; step <= 100; ++step) {
      screen.now = step * 0.01;
      bar.update({.step = step, .total = 100});
    }
    BOOST_TEST(screen.written.size() >= 10);
    BOOST_TEST(screen.written.size() <= 12);
    BOOST_TEST(contains(screen.written.back(), "100%"));
    for (const std::string& text : screen.written) {
      BOOST_TEST(text.starts_with("\r\x1b[K"));
      BOOST_TEST(text.find('\n') == std::string::npos);
    }
    bar.note("saved");
    BOOST_TEST(screen.written.back().starts_with("\r\x1b[Ksaved\ntrain  "));
  }
  BOOST_TEST(screen.written.back() == "\r\x1b[K");  // the line is cleared at the end
}

BOOST_AUTO_TEST_CASE(plain_lines_are_written_every_10_seconds) {
  Screen screen;
  ProgressBar bar = screen.bar({.terminal = false});
  for (int step = 1; step <= 100; ++step) {
    screen.now = step;
    bar.update({.step = step, .total = 100});
  }
  // Lines are written at 1 s, then every 10 s, and at the end.
  BOOST_TEST(screen.written.size() == 11);
  BOOST_TEST(screen.written.front() == "train step 1/100 (1%)  ETA 1:39\n");
  BOOST_TEST(screen.written.back() == "train step 100/100 (100%)  ETA 0:00\n");
  bar.note("saved");
  BOOST_TEST(screen.written.back() == "saved\n");
  bar.finish();
  BOOST_TEST(screen.written.back() == "saved\n");
  for (const std::string& text : screen.written) BOOST_TEST(text.find('\x1b') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(remaining_time_is_estimated_from_previous_steps) {
  Screen screen;
  ProgressBar bar = screen.bar({.terminal = false}, 0.0);
  screen.now = 102.0;
  bar.update({.step = 510, .total = 1000});
  BOOST_TEST(contains(screen.written.back(), "ETA 1:38"));  // 490 steps of 0.2 s
  bar.update({.step = 510, .total = 1000, .seconds_left = 7.0});
  BOOST_TEST(contains(screen.written.back(), "ETA 0:07"));  // the trainer's estimate replaces it
}

/// The style of a descriptor while an environment variable has this value (null: it is unset).
ProgressStyle style_with(const char* name, const char* value, int descriptor) {
  const char* old = ::getenv(name);
  const std::string before = old ? old : "";
  value ? ::setenv(name, value, 1) : ::unsetenv(name);
  const ProgressStyle style = detect_style(descriptor);
  old ? ::setenv(name, before.c_str(), 1) : ::unsetenv(name);
  return style;
}

BOOST_AUTO_TEST_CASE(style_of_a_file_follows_the_locale) {
  const FileDescriptor none = open_file("/dev/null", O_WRONLY);
  BOOST_TEST(!detect_style(none.get()).terminal);
  BOOST_TEST(!detect_style(none.get()).color);
  BOOST_TEST(style_with("LC_ALL", "de_DE.UTF-8", none.get()).unicode);
  BOOST_TEST(style_with("LC_ALL", "C.utf8", none.get()).unicode);
  BOOST_TEST(!style_with("LC_ALL", "C", none.get()).unicode);
}

/// A pseudoterminal. If none can be opened (for example because /dev/pts is not mounted),
/// `terminal` is invalid.
struct Pseudoterminal {
  FileDescriptor master{::posix_openpt(O_RDWR | O_NOCTTY)};
  FileDescriptor terminal;

  Pseudoterminal() {
    if (master.get() < 0 || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return;
    terminal = FileDescriptor(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
};

boost::test_tools::assertion_result pseudoterminals_work(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(Pseudoterminal().terminal.get() >= 0);
  if (!result) result.message() << "no pseudoterminal can be opened: is /dev/pts mounted?";
  return result;
}

BOOST_AUTO_TEST_CASE(style_of_a_terminal_follows_the_environment,
                     *boost::unit_test::precondition(pseudoterminals_work)) {
  const Pseudoterminal pseudo;
  const int terminal = pseudo.terminal.get();
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  BOOST_TEST(detect_style(terminal).terminal);
  BOOST_TEST(detect_style(terminal).color);
  BOOST_TEST(detect_style(terminal).width == 80);  // the default, because no size is set
  BOOST_TEST(style_with("NO_COLOR", "1", terminal).terminal);
  BOOST_TEST(!style_with("NO_COLOR", "1", terminal).color);
  BOOST_TEST(style_with("NO_COLOR", "", terminal).color);
  BOOST_TEST(!style_with("TERM", "dumb", terminal).terminal);
  BOOST_TEST(!style_with("TERM", nullptr, terminal).terminal);
}

BOOST_AUTO_TEST_SUITE_END()
