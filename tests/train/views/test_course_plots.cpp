// The drawings of the course, compared with values that are computed in another way.
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <tuple>

#include "tests/train/support.h"
#include "train/results/point.h"
#include "train/views/report/course_plots.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(course_plots)

namespace {

constexpr double width = 400, height = 190;  // pixels of a chart

/// The points of the line with this name, in pixels.
std::vector<Point> points_of(const Drawing& chart, const std::string& name) {
  const std::size_t title = chart.body.find("<title>" + name + "</title>");
  BOOST_REQUIRE(title != std::string::npos);
  const std::size_t begin = chart.body.rfind(" d=\"", title) + 4;
  std::string path = chart.body.substr(begin, chart.body.find('"', begin) - begin);
  for (char& c : path) c = c == 'M' || c == 'L' ? ' ' : c;
  std::istringstream in(path);
  std::vector<Point> points;
  for (Point p; in >> p.x >> p.y;) points.push_back(p);
  return points;
}

/// The heights of the bars with a tooltip "NAME: …", in pixels; of bars below 0 they are negative
/// (`zero`: the y coordinate of 0).
std::vector<double> bars_of(const Drawing& chart, const std::string& name, double zero = height) {
  std::vector<double> heights;
  const auto number = [&](std::size_t at, const std::string& key) {
    return std::stod(chart.body.substr(chart.body.find(key, at) + key.size()));
  };
  for (std::size_t at = 0; (at = chart.body.find("<title>" + name + ": ", at)) != std::string::npos;
       ++at) {
    const std::size_t bar = chart.body.rfind("<rect", at);
    const double extent = number(bar, " height=\"");
    heights.push_back(number(bar, " y=\"") < zero - 0.01 ? extent : -extent);
  }
  return heights;
}

/// Whether bars have the heights of values on an axis with this number of pixels per unit.
void check_bars(const std::vector<double>& heights, const std::vector<double>& values,
                double unit) {
  BOOST_REQUIRE(heights.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_TEST(std::abs(heights[i] - unit * values[i]) < 0.006, "bar " << i << ": " << heights[i]);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

// The central difference of 1/x is −1/(x² − h²), so its error at x = 2 is h² / (4 (4 − h²)). Five
// points are (4 D(h) − D(2h)) / 3 with the central difference D. Both are the largest at x = 2.
BOOST_AUTO_TEST_CASE(errors_of_large_steps_are_those_of_the_formulas) {
  const auto central = [](double h) { return h * h / (4 * (4 - h * h)); };
  const std::vector<Drawing> charts = gradcheck_plots();
  const auto check = [&](std::size_t chart, const std::string& name, double h, double error) {
    const double x = width * (std::log10(h) + 12) / 11, y = -std::log10(error) / 14 * height;
    for (const Point& p : points_of(charts[chart], name)) {
      if (std::abs(p.x - x) > 0.06) continue;
      BOOST_TEST(std::abs(p.y - y) < 0.2, name << " at " << h << ": " << p.y << ", not " << y);
      return;
    }
    BOOST_ERROR("no point at " << h);
  };
  for (const double h : {0.1, 0.05, 0.01, 0.001, 1e-4})
    check(0, "central difference", h, central(h));
  for (const double h : {0.1, 0.05, 0.02, 0.01})
    check(0, "five points", h, (central(2 * h) - 4 * central(h)) / 3);
  for (const double h : {0.1, 0.05}) check(1, "central difference", h, central(h));
  // In float32, 2 ± 1e-8 is 2: the difference is 0, and its error the derivative, 1/4.
  check(1, "central difference", 1e-8, 0.25);
}

// At x = 2, each of the two values is wrong by up to ε: half of it is the rounding of x ± h, half
// that of the quotient. Their difference, divided by 2h, is wrong by up to ε / h.
BOOST_AUTO_TEST_CASE(errors_of_small_steps_grow_with_the_reciprocal_of_the_step) {
  const std::vector<Drawing> charts = gradcheck_plots();
  for (const auto& [chart, epsilon, from, to] : {std::tuple(0, std::ldexp(1, -53), 1e-11, 1e-7),
                                                 std::tuple(1, std::ldexp(1, -24), 2e-6, 1e-4)}) {
    int checked = 0;
    for (const Point& p : points_of(charts[chart], "central difference")) {
      const double h = std::pow(10, 11 * p.x / width - 12),
                   error = std::pow(10, -14 * p.y / height);
      if (h < from * 0.99 || h > to * 1.01) continue;
      ++checked;
      BOOST_TEST(error < epsilon / h, h);
      BOOST_TEST(error > epsilon / h / 100, h);
    }
    BOOST_TEST(checked >= 5);
  }
}

// Of two keys, the first has the weight σ(q · (k₁ − k₂)). With Cartesian coordinates, k₁ = (1, 0)
// and k₂ = (1/2, √3/2).
BOOST_AUTO_TEST_CASE(weights_are_sigmoids_of_the_difference_of_two_scores) {
  const std::vector<Drawing> all = score_plots();
  const double degree = std::acos(-1.0) / 180, qx = 2 * std::cos(20 * degree),
               qy = 2 * std::sin(20 * degree), kx = 0.5, ky = std::sqrt(3.0) / 2;
  const std::map<std::size_t, std::pair<std::pair<double, double>, std::function<double(double)>>>
      charts{{1,
              {{-180, 180},
               [&](double a) {
                 return 2 * (std::cos(a * degree) * (1 - kx) - std::sin(a * degree) * ky);
               }}},
             {2, {{0, 16}, [&](double r) { return r / 2 * (qx * (1 - kx) - qy * ky); }}},
             {3, {{0, 4}, [&](double r) { return qx * (1 - r * kx) - qy * r * ky; }}}};
  for (const auto& [chart, expected] : charts) {
    const auto& [range, difference] = expected;
    const std::vector<Point> first = points_of(all[chart], "k₁"),
                             second = points_of(all[chart], "k₂");
    BOOST_REQUIRE(first.size() == 201);
    BOOST_REQUIRE(second.size() == 201);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const double x = range.first + (range.second - range.first) * static_cast<double>(i) / 200,
                   weight = sigmoid(difference(x));
      BOOST_TEST(std::abs(first[i].y - height * (1 - weight)) < 0.06, x);
      BOOST_TEST(std::abs(second[i].y - height * weight) < 0.06, x);
    }
  }
  BOOST_TEST(contains(all[0].body, fmt::format("= {:.2f}, ", qx)));
  BOOST_TEST(contains(all[0].body, fmt::format("= {:.2f}<", qx * kx + qy * ky)));
  // The tip of q, with 150 pixels per unit and the origin at (50, 165).
  BOOST_TEST(contains(all[0].body, fmt::format("L{:.2f} {:.2f}\"", 50 + 150 * qx, 165 - 150 * qy)));
}

// Ratios of probabilities are exponentials of differences of logits. Targets are 1 − ε + ε/5 for the
// right class and ε/5 for the others.
BOOST_AUTO_TEST_CASE(targets_and_gradients_are_drawn_at_their_values) {
  const std::vector<Drawing> all = loss_plots();
  const std::vector<double> p = bars_of(all[0], "p");
  BOOST_REQUIRE(p.size() == 5);
  for (const auto& [i, logit] : {std::pair(1, 1.0), {2, 0.5}, {3, 0.0}, {4, -1.0}})
    BOOST_TEST(p[0] / p[i] == std::exp(3 - logit), boost::test_tools::tolerance(4e-3));
  BOOST_TEST(std::abs(p[0] + p[1] + p[2] + p[3] + p[4] - height) < 0.03);
  check_bars(bars_of(all[0], "q, ε = 0"), {1, 0, 0, 0, 0}, height);
  check_bars(bars_of(all[0], "q, ε = 0.1"), {0.92, 0.02, 0.02, 0.02, 0.02}, height);
  const double unit = height / 0.4, zero = 0.15 * unit;
  for (const auto& [name, q] : {std::pair("p − q, ε = 0", std::array{1.0, 0.0, 0.0, 0.0, 0.0}),
                                {"p − q, ε = 0.1", std::array{0.92, 0.02, 0.02, 0.02, 0.02}}}) {
    const std::vector<double> bars = bars_of(all[1], name, zero);
    BOOST_REQUIRE(bars.size() == 5);
    double sum = 0;
    for (std::size_t j = 0; j < 5; ++j) {
      BOOST_TEST(std::abs(bars[j] / unit - (p[j] / height - q[j])) < 1e-4, name << j);
      sum += bars[j];
    }
    BOOST_TEST(std::abs(sum) < 0.03, name);
  }
}

// After each tile, m, Z and o are those of all scores so far, computed at once; the share of
// earlier tiles is their Z for the new maximum.
BOOST_AUTO_TEST_CASE(states_after_tiles_equal_sums_over_all_scores_so_far) {
  const std::array scores{1.0, 3.0, 2.0, 7.0, 0.0, 5.0};
  std::vector<double> sums, carried, logs, outputs;
  for (const std::size_t n : {2, 4, 6}) {
    double m = 0, before = 0, plain = 0, weighted = 0;
    for (std::size_t j = 0; j < n; ++j) {
      m = std::max(m, scores[j]);
      if (j < n - 2) before += std::exp(scores[j]);
      plain += std::exp(scores[j]);
      weighted += std::exp(scores[j]) * 10 * static_cast<double>(j + 1);
    }
    sums.push_back(plain / std::exp(m));
    carried.push_back(before / std::exp(m));
    logs.push_back(std::log(plain));
    outputs.push_back(weighted / plain);
  }
  const std::vector<Drawing> all = tile_plots();
  check_bars(bars_of(all[1], "scores of this tile"), sums, height / 1.4);
  check_bars(bars_of(all[1], "earlier tiles, restated for the new m"), carried, height / 1.4);
  check_bars(bars_of(all[2], "m + ln Z"), logs, height / 8);
  check_bars(bars_of(all[3], "o / Z"), outputs, height / 50);
  // The line of the whole row is at the top of the last bar. The running maxima are 3, 7 and 7.
  for (const auto& [chart, top] :
       {std::pair(0, 7.0 / 8), {1, sums[2] / 1.4}, {2, logs[2] / 8}, {3, outputs[2] / 50}})
    BOOST_TEST(std::abs(points_of(all[chart], "whole row")[0].y - height * (1 - top)) < 0.06);
  std::vector<double> maxima;
  for (const Point& p : points_of(all[0], "running maximum"))
    maxima.push_back(8 - p.y / height * 8);
  BOOST_REQUIRE(maxima.size() == 6);
  for (const auto& [i, m] : {std::pair(0, 3.0), {1, 3.0}, {2, 7.0}, {3, 7.0}, {4, 7.0}, {5, 7.0}})
    BOOST_TEST(std::abs(maxima[i] - m) < 0.01, i);
}

// All 27 outputs, by enumeration: the best is aba. Greedy search finds aaa, a beam of 2 baa, and a
// beam of 3 the best.
BOOST_AUTO_TEST_CASE(wider_beams_find_more_probable_outputs) {
  const std::map<std::string, std::array<double, 3>> after{{"", {0.5, 0.4, 0.1}},
                                                           {"a", {0.4, 0.35, 0.25}},
                                                           {"b", {0.8, 0.1, 0.1}},
                                                           {"c", {0.3, 0.6, 0.1}}};
  std::map<std::string, double> all;
  for (int i = 0; i < 27; ++i) {
    std::string text, last;
    double p = 1;
    for (const int token : {i / 9, i / 3 % 3, i % 3}) {
      p *= after.at(last)[static_cast<std::size_t>(token)];
      last = std::string(1, "abc"[token]);
      text += last;
    }
    all[text] = p;
  }
  const auto best =
      std::ranges::max_element(all, {}, [](const auto& entry) { return entry.second; });
  BOOST_TEST(best->first == "aba");
  const std::vector<Drawing> drawings = beam_plots();
  for (const char* const found : {"1: aaa", "2: baa", "3: aba", "4: aba"})
    BOOST_TEST(contains(drawings[1].body, fmt::format(">{}</text>", found)), found);
  check_bars(bars_of(drawings[1], "aaa"), {all["aaa"]}, height / 0.15);
  check_bars(bars_of(drawings[1], "baa"), {all["baa"]}, height / 0.15);
  check_bars(bars_of(drawings[1], "aba"), {all["aba"], all["aba"]}, height / 0.15);
}

// The style of the dot before a prefix: .s0 kept, .s7 dropped.
BOOST_AUTO_TEST_CASE(a_beam_keeps_the_two_most_probable_prefixes_of_each_step) {
  const std::string tree = beam_plots()[0].body;
  for (const auto& [text, style] : {std::pair("a: 0.5", "s0"),
                                    {"b: 0.4", "s0"},
                                    {"c: 0.1", "s7"},
                                    {"aa: 0.5 · 0.4 = 0.2", "s0"},
                                    {"ab: 0.5 · 0.35 = 0.175", "s7"},
                                    {"ac: 0.5 · 0.25 = 0.125", "s7"},
                                    {"ba: 0.4 · 0.8 = 0.32", "s0"},
                                    {"bb: 0.4 · 0.1 = 0.04", "s7"},
                                    {"bc: 0.4 · 0.1 = 0.04", "s7"},
                                    {"aaa: 0.2 · 0.4 = 0.08", "s7"},
                                    {"aab: 0.2 · 0.35 = 0.07", "s7"},
                                    {"aac: 0.2 · 0.25 = 0.05", "s7"},
                                    {"baa: 0.32 · 0.4 = 0.128", "s0"},
                                    {"bab: 0.32 · 0.35 = 0.112", "s0"},
                                    {"bac: 0.32 · 0.25 = 0.08", "s7"}}) {
    const std::size_t at = tree.find(fmt::format(">{}</text>", text));
    BOOST_REQUIRE(at != std::string::npos);
    BOOST_TEST(tree.substr(tree.rfind("class=\"dot ", at) + 11, 2) == style, text);
  }
  std::size_t rings = 0;
  for (std::size_t at = 0; (at = tree.find("r=\"6.5\"", at)) != std::string::npos; ++at) ++rings;
  BOOST_TEST(rings == 4);  // <s>, a, aa and aaa
}

// After step t, t rows have been projected with a cache, and 1 + 2 + … + t without.
BOOST_AUTO_TEST_CASE(a_cache_makes_the_projected_rows_linear_in_the_steps) {
  std::vector<double> read, kept, without;
  for (int t = 1; t <= 12; ++t) {
    read.push_back(t);
    kept.push_back(t - 1);
    without.push_back(t * (t + 1) / 2.0);
  }
  const std::vector<Drawing> charts = cache_plots();
  const auto check = [](const Drawing& chart, const std::string& name,
                        const std::vector<double>& rows,
                        double unit) { check_bars(bars_of(chart, name), rows, unit); };
  const double step = bars_of(charts[0], "new: projected in this step").at(0),
               total = bars_of(charts[1], "without").at(0);
  BOOST_TEST(step > 12);
  BOOST_TEST(total > 2);
  check(charts[0], "new: projected in this step", read, height / std::round(height / step));
  check(charts[0], "kept in the cache", kept, height / std::round(height / step));
  check(charts[1], "with the cache", read, height / std::round(height / total));
  check(charts[1], "without", without, height / std::round(height / total));
}

BOOST_AUTO_TEST_SUITE_END()
