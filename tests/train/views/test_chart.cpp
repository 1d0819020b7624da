// Charts: scales, ticks and the reduction of lines.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "train/views/draw/chart.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(chart)

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

Chart with(std::vector<Point> points) {
  Chart chart;
  chart.title = "loss <of> it";
  chart.lines.push_back({"a & b", 0, false, std::move(points)});
  return chart;
}

/// The path data of the first line.
std::string path_of_line(const Drawing& drawing) {
  const std::size_t line = drawing.body.find("class=\"line"), d = drawing.body.find(" d=\"", line);
  return drawing.body.substr(d + 4, drawing.body.find('"', d + 4) - d - 4);
}

}  // namespace

BOOST_AUTO_TEST_CASE(line_extends_from_corner_to_corner) {
  const Drawing drawing = drawn(with({{0, 0}, {5, 1}, {10, 4}}));
  BOOST_TEST(path_of_line(drawing) == "M0 190L200 142.5L400 0");
  BOOST_TEST(drawing.body.find("loss &lt;of&gt; it") != std::string::npos);
  BOOST_TEST(drawing.body.find("a &amp; b") != std::string::npos);
  BOOST_TEST(drawing.body.find(">2.5<") == std::string::npos);  // ticks are round numbers
  for (const char* tick : {">0<", ">1<", ">2<", ">3<", ">4<", ">6<", ">8<", ">10<"})
    BOOST_TEST(drawing.body.find(tick) != std::string::npos, tick);
}

BOOST_AUTO_TEST_CASE(logarithmic_scale_has_ticks_at_decades) {
  Chart chart = with({{1, 0.001}, {2, 0}, {3, 1000}});  // 0 has no logarithm
  chart.log_y = true;
  const Drawing drawing = drawn(chart);
  for (const char* tick : {">0.001<", ">0.1<", ">1<", ">1000<"})
    BOOST_TEST(drawing.body.find(tick) != std::string::npos, tick);
  BOOST_TEST(path_of_line(drawing) == "M0 190m-3 0h6M400 0m-3 0h6");
  chart = with({{1, 0.012}, {2, 2.4}});  // decades alone would be too few ticks
  chart.log_y = true;
  const std::string narrow = drawn(chart).body;
  for (const char* tick : {">0.02<", ">0.05<", ">0.1<", ">0.2<", ">1<", ">2<"})
    BOOST_TEST(narrow.find(tick) != std::string::npos, tick);
}

BOOST_AUTO_TEST_CASE(ticks_of_tiny_values_differ_from_zero) {
  Chart chart = with({{-1, 0}, {0, 1e-14}, {1, 1e-6}});
  BOOST_TEST(count(drawn(chart).body, ">0<") == 2);  // one on each axis
  chart.log_y = true;
  const std::string body = drawn(chart).body;
  BOOST_TEST(body.find(">1e-14<") != std::string::npos);
  BOOST_TEST(count(body, ">0<") == 1);  // that of the x axis
  BOOST_TEST(body.find(">-0<") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(line_breaks_at_nonfinite_points) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(path_of_line(drawn(with({{0, 0}, {1, nan}, {2, 1}}))) == "M0 190m-3 0h6M400 0m-3 0h6");
}

BOOST_AUTO_TEST_CASE(single_value_is_drawn_as_a_centred_dash) {
  BOOST_TEST(path_of_line(drawn(with({{7, 3}}))) == "M200 95m-3 0h6");
}

BOOST_AUTO_TEST_CASE(chart_without_values_contains_a_note) {
  BOOST_TEST(drawn(Chart{}).body.find("no values") != std::string::npos);
  BOOST_TEST(drawn(with({})).body.find("no values") != std::string::npos);
  const double infinite = std::numeric_limits<double>::infinity();
  BOOST_TEST(drawn(with({{1, infinite}})).body.find("no values") != std::string::npos);
}

// A spike of one step in 100,000 remains visible, and the path is short.
BOOST_AUTO_TEST_CASE(long_line_is_reduced_and_keeps_its_peaks) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({double(i), i == 54'321 ? 9.0 : 1.0 + i % 2});
  const std::string path = path_of_line(drawn(with(points)));
  BOOST_TEST(count(path, "L") <= 4 * 401);
  BOOST_TEST(path.find(" 0L") != std::string::npos);  // the spike reaches the top
  BOOST_TEST(path.size() < 20'000);
}

// Three of four lines differ by less than half a pixel (0.2 % of the axis is 0.38 pixels): their
// dashes of 8 pixels follow one another. The fourth leaves them at the end, so it is drawn whole.
BOOST_AUTO_TEST_CASE(coinciding_lines_alternate) {
  Chart chart = with({{0, 0}, {5, 8}, {10, 10}});
  chart.lines.push_back({"apart", 1, false, {{0, 0}, {5, 8}, {10, 9}}});
  chart.lines.push_back({"near", 2, false, {{0, 0.02}, {5, 8}, {10, 10}}});
  chart.lines.push_back({"same", 11, false, {{0, 0}, {5, 8}, {10, 10}}});
  const std::string body = drawn(chart).body;
  for (const char* line :
       {"line s0\" style=\"stroke-dasharray:8 16;stroke-dashoffset:0\"",
        "line s1\" d=", "line s2\" style=\"stroke-dasharray:8 16;stroke-dashoffset:-8\"",
        "line s3 second\" style=\"stroke-dasharray:8 16;stroke-dashoffset:-16\""})
    BOOST_TEST(body.find(line) != std::string::npos, line);
  for (const char* name : {">a &amp; b</text>", ">apart</text>", ">near</text>", ">same</text>"})
    BOOST_TEST(body.find(name) != std::string::npos, name);
}

BOOST_AUTO_TEST_CASE(bars_bands_and_dots_are_scaled_to_the_axes) {
  Chart chart = with({{0, 0}, {10, 10}});
  chart.bands.push_back({1, {{0, 0}, {10, 5}}, {{0, 5}, {10, 10}}});
  chart.bars.push_back({2, 2, 4, 5, "two to four"});
  chart.dots.push_back({3, {10, 10}, "best: 10"});
  chart.legend.emplace_back(2, "bars");
  const Drawing drawing = drawn(chart);
  BOOST_TEST(drawing.body.find("<path class=\"band s1\" d=\"M0 95L400 0L400 95L0 190z\"/>") !=
             std::string::npos);
  BOOST_TEST(drawing.body.find("<rect class=\"bar s2\" x=\"80\" y=\"95\" width=\"80\" "
                               "height=\"95\"><title>two to four</title></rect>") !=
             std::string::npos);
  BOOST_TEST(drawing.body.find("<title>best: 10</title>") != std::string::npos);
  BOOST_TEST(drawing.body.find(">bars</text>") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(axis_of_bars_begins_at_zero) {
  Chart chart;
  chart.bars = {{0, 0, 1, 4, ""}, {0, 1, 2, 3, ""}};
  const std::string body = drawn(chart).body;
  for (const char* bar : {"x=\"0\" y=\"0\" width=\"200\" height=\"190\"",
                          "x=\"200\" y=\"47.5\" width=\"200\" height=\"142.5\""})
    BOOST_TEST(body.find(bar) != std::string::npos, bar);
}

BOOST_AUTO_TEST_CASE(drawings_are_arranged_in_rows) {
  const Drawing all = arranged({{10, 5, "a"}, {20, 8, "b"}, {7, 3, "c"}}, 2);
  BOOST_TEST(all.width == 30);
  BOOST_TEST(all.height == 11);
  BOOST_TEST(all.body.find("translate(10 0)\">\nb") != std::string::npos);
  BOOST_TEST(all.body.find("translate(0 8)\">\nc") != std::string::npos);
}

// The y axis extends from 0 at 190 pixels to 4 at 0, the x axis from 0 at 0 pixels to 10 at 400.
BOOST_AUTO_TEST_CASE(tick_labels_are_at_their_values) {
  const std::string body = drawn(with({{0, 0}, {5, 1}, {10, 4}})).body;
  for (const char* tick : {"M0 190h400\"/><text x=\"-6\" y=\"193.5\" text-anchor=\"end\">0<",
                           "M0 142.5h400\"/><text x=\"-6\" y=\"146\" text-anchor=\"end\">1<",
                           "M0 0h400\"/><text x=\"-6\" y=\"3.5\" text-anchor=\"end\">4<",
                           "M80 0v190\"/><text x=\"80\" y=\"204\" text-anchor=\"middle\">2<",
                           "M400 0v190\"/><text x=\"400\" y=\"204\" text-anchor=\"middle\">10<"})
    BOOST_TEST(body.find(tick) != std::string::npos, tick);
  Chart named = with({{0, 0}, {10, 4}});
  named.x_ticks = {{2.5, "a quarter"}};
  BOOST_TEST(
      drawn(named).body.find("<text x=\"100\" y=\"204\" text-anchor=\"middle\">a quarter<") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(large_ticks_are_labelled_in_thousands_and_millions) {
  const std::string body = drawn(with({{0, 0}, {50'000, 4'000'000}})).body;
  for (const char* tick : {">10k<", ">50k<", ">1M<", ">4M<"})
    BOOST_TEST(body.find(tick) != std::string::npos, tick);
  const std::string small = drawn(with({{0, 0}, {9000, 1e13}})).body;
  for (const char* tick : {">8000<", ">1e+13<"})
    BOOST_TEST(small.find(tick) != std::string::npos, tick);
}

BOOST_AUTO_TEST_CASE(legend_has_the_colours_of_the_lines_and_bars) {
  Chart chart = with({{0, 0}, {10, 10}});
  chart.lines.push_back({"pale", 9, true, {{0, 1}, {10, 2}}});
  chart.lines.push_back({"", 3, false, {{0, 3}, {10, 4}}});  // has no entry
  chart.legend.emplace_back(5, "a bar");
  const std::string body = drawn(chart).body;
  for (const char* entry :
       {"<path class=\"line s0\" d=\"M0 0h18\"/><text x=\"22\" y=\"3.5\">a &amp; b<",
        "<path class=\"line s1 second faint\" d=\"M0 0h18\"/><text x=\"22\" y=\"3.5\">pale<",
        "<path class=\"bar s5\" d=\"M4 -5h10v10h-10z\"/><text x=\"22\" y=\"3.5\">a bar<"})
    BOOST_TEST(body.find(entry) != std::string::npos, entry);
  BOOST_TEST(count(body, "M0 0h18") == 2);
}

BOOST_AUTO_TEST_CASE(long_name_takes_several_lines_of_the_legend) {
  Chart chart = with({{0, 0}, {10, 10}});
  const double before = drawn(chart).height;
  std::string name = "first";
  for (int i = 0; i < 20; ++i) name += fmt::format(", key{} {}", i, i);
  chart.lines.push_back({name + " last", 1, false, {{0, 1}, {10, 2}}});
  chart.lines.push_back({"short", 2, false, {{0, 1}, {10, 3}}});
  const Drawing drawing = drawn(chart);
  const std::string& body = drawing.body;
  std::string all;
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = body.find("<text x=\"22\"", at)) != std::string::npos; ++lines) {
    const std::size_t begin = body.find('>', at) + 1, end = body.find('<', begin);
    const std::string line = body.substr(begin, end - begin);
    BOOST_TEST(22 + label_length(line) < drawing.width - 56, line);
    all += line + " ";
    at = end;
  }
  BOOST_TEST(all == "a &amp; b " + name + " last short ");
  BOOST_TEST(lines > 4u);
  // The names stand below each other, the short one in a row of its own.
  BOOST_TEST(drawing.height == before + 15 * static_cast<double>(lines - 1));
}

BOOST_AUTO_TEST_CASE(dots_are_at_their_points) {
  Chart chart = with({{0, 0}, {10, 4}});
  chart.dots.push_back({3, {5, 1}, ""});
  BOOST_TEST(drawn(chart).body.find(
                 "<circle class=\"dot s3\" cx=\"200\" cy=\"142.5\" r=\"3.5\"></circle>") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
