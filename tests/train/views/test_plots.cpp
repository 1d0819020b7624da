// `heed plot`: every drawing contains values, and known values are drawn correctly.
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "tests/train/support.h"
#include "train/views/report/plots.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(plots)

namespace {

Config config_of(const std::string& text = "") {
  return parse_config("data: {synthetic: {name: copy}}\n" + text, "test");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_plot_contains_values) {
  for (const std::string& name : plot_names()) {
    const std::vector<Drawing> all = plots_of(name, config_of(), 32);
    BOOST_TEST(all.size() >= 2, name);
    for (const Drawing& drawing : all) {
      BOOST_TEST(drawing.width > 100, name);
      BOOST_TEST(!contains(drawing.body, "no values"), name);
      BOOST_TEST(!contains(drawing.body, "nan"), name);
    }
  }
  BOOST_TEST(
      contains(error_of(Exit::usage, [] { plots_of("mask", config_of(), 32); }),
               "available: positions, schedule, softmax, masks, activations, layers, gradcheck, "
               "scores, loss, tiles, beam, cache"));
}

// The two lines of inner products coincide where both are defined: PE(p) · PE(p + k) depends only
// on k.
BOOST_AUTO_TEST_CASE(inner_products_of_positions_depend_only_on_the_distance) {
  const std::string body = plots_of("positions", config_of("model: {d_model: 32}\n"), 16)[1].body;
  std::vector<std::string> paths;
  for (std::size_t at = 0; (at = body.find("class=\"line s", at)) != std::string::npos; ++at) {
    const std::size_t d = body.find(" d=\"", at) + 4;
    paths.push_back(body.substr(d, body.find('"', d) - d));
  }
  BOOST_REQUIRE(paths.size() >= 2);
  BOOST_TEST(paths[0].starts_with(paths[1]));
}

// At position 0 every sine is 0 and every cosine 1, so no two neighbours have the same colour.
BOOST_AUTO_TEST_CASE(encodings_of_many_dimensions_are_drawn_without_means) {
  for (const auto& [d, drawn_dimensions] : {std::pair(64, 64), {256, 128}, {512, 128}}) {
    const Config config = config_of(fmt::format("model: {{d_model: {}}}\n", d));
    const std::string body = plots_of("positions", config, 16)[0].body;
    BOOST_TEST(contains(body, fmt::format("× {} dimensions", d)));
    BOOST_TEST(contains(body, "pairs of dimensions") == (d > 128));
    const std::size_t begin = body.find("class=\"heat l12\""), end = body.find("/>", begin);
    int cosines = 0;
    for (std::size_t at = begin; (at = body.find(" 0h", at)) < end; ++at) ++cosines;
    BOOST_TEST(cosines == drawn_dimensions / 2, d);
  }
}

BOOST_AUTO_TEST_CASE(causal_mask_is_drawn_as_a_triangle) {
  const Config config = config_of("model: {attention: {pattern: window, window: 2}}\n");
  const std::vector<Drawing> all = plots_of("masks", config, 4);
  // The second drawing shows causal full attention: rows of 1, 2, 3 and 4 keys.
  for (const char* row : {"M0 0h47.5v", "M0 47.5h95v", "M0 95h142.5v", "M0 142.5h190v"})
    BOOST_TEST(contains(all[1].body, row), row);
}

BOOST_AUTO_TEST_CASE(masks_have_the_sizes_of_the_config) {
  const auto has = [](const std::string& attention, const std::string& title) {
    return std::ranges::any_of(
        plots_of("masks", config_of("model: {attention: {" + attention + "}}\n"), 64),
        [&](const Drawing& d) { return contains(d.body, title); });
  };
  BOOST_TEST(has("pattern: window, window: 40", ">window of 40<"));
  BOOST_TEST(has("pattern: bigbird, block: 8", ">bigbird, blocks of 8<"));
  // The default sizes are limited because they would fill the drawing.
  BOOST_TEST(has("pattern: full", ">window of 16<"));
  BOOST_TEST(has("pattern: full", ">bigbird, blocks of 4<"));
}

BOOST_AUTO_TEST_CASE(schedule_plot_shows_the_schedule_of_the_config) {
  const Config config =
      config_of("optim: {lr: 0.5, schedule: {name: linear, warmup: 10}}\ntrain: {steps: 100}\n");
  const std::string body = plots_of("schedule", config, 64)[0].body;
  BOOST_TEST(contains(body, "learning rate: linear, peak 0.5, warmup 10"));
  BOOST_TEST(contains(body, ">0.5<"));
  BOOST_TEST(contains(body, ">100<"));
}

/// The path of the line with this name, which follows its classes and, if it coincides with
/// another, its dashes.
std::string line_named(const std::string& body, const std::string& name) {
  const std::size_t title = body.find("<title>" + name + "</title>");
  BOOST_REQUIRE(title != std::string::npos);
  const std::size_t begin = body.rfind("<path", title);
  return body.substr(begin, title - begin);
}

// inverse_sqrt decays like noam; gelu_tanh is an approximation of gelu.
BOOST_AUTO_TEST_CASE(lines_that_would_hide_each_other_alternate) {
  const std::string schedules = plots_of("schedule", config_of(), 64)[1].body,
                    activations = plots_of("activations", config_of(), 64)[0].body;
  for (const auto& [body, names] : {std::pair(schedules, std::array{"noam", "inverse_sqrt"}),
                                    {activations, std::array{"gelu", "gelu_tanh"}}}) {
    BOOST_TEST(contains(line_named(body, names[0]), "stroke-dasharray:8 8;stroke-dashoffset:0\""));
    BOOST_TEST(contains(line_named(body, names[1]), "stroke-dasharray:8 8;stroke-dashoffset:-8\""));
  }
  for (const auto& [body, name] :
       {std::pair(schedules, "cosine"), {schedules, "constant"}, {activations, "silu"}})
    BOOST_TEST(!contains(line_named(body, name), "dasharray"), name);
}

// With both inputs x, swiglu is x² σ(x), and its derivative 2 x σ(x) + x² σ(x) (1 − σ(x)). Both are
// 0 at x = 0; x = 0, 2 and 4 are at 200, 300 and 400 pixels.
BOOST_AUTO_TEST_CASE(gated_activations_are_drawn_with_both_inputs_equal) {
  const std::vector<Drawing> all = plots_of("activations", config_of(), 64);
  BOOST_REQUIRE(all.size() == 4);
  BOOST_TEST(contains(all[2].body, "f(a) · b with a = b = x"));
  const auto height = [](const Drawing& chart, const std::string& x) {
    const std::string line = line_named(chart.body, "swiglu");
    const auto y = [&](const std::string& at) {
      return std::stod(line.substr(line.find("L" + at + " ") + at.size() + 2));
    };
    return y("200") - y(x);
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto slope = [&](double x) {
    return 2 * x * sigmoid(x) + x * x * sigmoid(x) * (1 - sigmoid(x));
  };
  BOOST_TEST(height(all[2], "300") / height(all[2], "400") == sigmoid(2) / sigmoid(4) / 4,
             boost::test_tools::tolerance(5e-3));
  BOOST_TEST(height(all[3], "300") / height(all[3], "400") == slope(2) / slope(4),
             boost::test_tools::tolerance(5e-3));
  for (const std::size_t chart : {2, 3}) line_named(all[chart].body, "geglu");
}

// The rows of a map are those of its matrix: queries or positions, named along the vertical axis.
BOOST_AUTO_TEST_CASE(maps_have_axes_and_a_scale) {
  const auto check = [](const Drawing& map, const std::string& rows, const std::string& columns,
                        const std::string& low, const std::string& high) {
    const auto is_vertical = [&](const std::string& name) {
      const std::size_t end = map.body.find(">" + name + "</text>");
      BOOST_REQUIRE(end != std::string::npos);
      return contains(map.body.substr(0, end).substr(map.body.rfind("<text", end)), "rotate(-90)");
    };
    BOOST_TEST((is_vertical(rows) && !is_vertical(columns)), map.body);
    for (const std::string& text : {low, high})
      BOOST_TEST(contains(map.body, ">" + text + "</text>"), text);
  };
  for (const Drawing& mask : plots_of("masks", config_of(), 8))
    check(mask, "query", "key", "not read", "read");
  check(plots_of("positions", config_of(), 8)[0], "position", "dimension", "−1", "1");
}

// With pre norm the gradients fall from the first layer of a decoder to the last, with post norm they
// rise (Xiong et al., "On Layer Normalization in the Transformer Architecture", 2020). Both charts
// begin at 0, and the last layer has the norm 1.
BOOST_AUTO_TEST_CASE(gradients_fall_over_the_layers_with_pre_norm_and_rise_with_post_norm) {
  const std::string model = "model: {d_model: 32, heads: 4, d_ff: 128, layers: 8}\n";
  const std::vector<Drawing> all = plots_of("layers", config_of(model), 8);
  BOOST_REQUIRE(all.size() == 2);
  const auto heights = [](const Drawing& chart) {
    std::string path = line_named(chart.body, "decoder");
    for (char& c : path) c = c == 'M' || c == 'L' || c == '"' ? ' ' : c;
    std::istringstream in(path.substr(path.find("d= ") + 3));
    std::vector<double> result;
    for (double x = 0, y = 0; in >> x >> y;) result.push_back(190 - y);
    return result;
  };
  const std::vector<double> pre = heights(all[0]), post = heights(all[1]);
  BOOST_REQUIRE(pre.size() == 8);
  BOOST_REQUIRE(post.size() == 8);
  BOOST_TEST(pre.front() > 1.2 * pre.back());
  BOOST_TEST(2 * post.front() < post.back());
}

/// The points of the line with this name, in pixels from the lower left corner of the chart.
std::vector<std::pair<double, double>> points_named(const Drawing& chart, const std::string& name) {
  std::string path = line_named(chart.body, name);
  path = path.substr(path.find(" d=\"") + 4);
  for (char& c : path) c = c == 'M' || c == 'L' || c == '"' ? ' ' : c;
  std::istringstream in(path);
  std::vector<std::pair<double, double>> points;
  for (double x = 0, y = 0; in >> x >> y;) points.emplace_back(x, 190 - y);
  return points;
}

// A query and an equal key at distance k: the mean of cos(k base^(−2i / size)) over the pairs i. Values
// are read from the chart with two of them: distance 0 is 1, distance 1 is computed.
BOOST_AUTO_TEST_CASE(scores_of_rotary_positions_are_drawn_over_the_distance) {
  const Config config =
      config_of("model: {d_model: 24, heads: 3, positions: rotary, rotary_base: 500}\n");
  const Drawing chart = plots_of("positions", config, 33)[3];
  BOOST_TEST(contains(chart.body, "(head size 8)"));
  const auto score = [](double base, std::size_t distance) {
    double sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += std::cos(static_cast<double>(distance) * std::pow(base, -i / 4.0)) / 4;
    return sum;
  };
  for (const int base : {500, 100}) {
    const auto points = points_named(chart, fmt::format("base {}", base));
    BOOST_REQUIRE(points.size() == 33);
    const double unit = (points[0].second - points[1].second) / (1 - score(base, 1));
    for (std::size_t k = 0; k < points.size(); ++k) {
      BOOST_TEST(std::abs(points[k].first - 12.5 * static_cast<double>(k)) < 0.06);
      BOOST_TEST(
          std::abs((points[0].second - points[k].second) / unit - (1 - score(base, k))) < 0.02,
          base << " at " << k);
    }
  }
}

// Press et al. 2022: of four heads, the slopes are 1/4, 1/16, 1/64 and 1/256.
BOOST_AUTO_TEST_CASE(biases_of_alibi_fall_with_the_slope_of_each_head) {
  const Drawing chart = plots_of("positions", config_of("model: {heads: 4}\n"), 65)[4];
  for (int head = 0; head < 4; ++head) {
    const auto points = points_named(chart, fmt::format("head {}", head));
    BOOST_REQUIRE(points.size() == 65);
    BOOST_TEST(points[0].second == 190);  // no bias at distance 0
    // The largest bias, 64 / 4, is at the bottom of the chart.
    for (const std::size_t k : {1, 32, 64})
      BOOST_TEST(std::abs(points[k].second -
                          190 * (1 - static_cast<double>(k) / 64 / std::pow(4, head))) < 0.06);
  }
}

// Raffel et al. 2020: of 32 buckets, a causal model gives the distances below 16 one each, and one that
// reads both directions those below 8; its keys after the query have the buckets from 16 on.
BOOST_AUTO_TEST_CASE(buckets_of_t5_are_drawn_for_both_directions) {
  const Drawing chart = plots_of("positions", config_of(), 100)[5];
  const auto causal = points_named(chart, "causal"), both = points_named(chart, "both directions");
  BOOST_REQUIRE(causal.size() == 200);
  BOOST_REQUIRE(both.size() == 399);
  const double unit = 190.0 / 31;
  const auto bucket = [&](const auto& points, std::size_t i) {
    return std::lround(points[i].second / unit);
  };
  for (std::size_t k = 0; k < 16; ++k) BOOST_TEST(bucket(causal, k) == static_cast<long>(k));
  for (std::size_t k = 0; k < 8; ++k) {
    BOOST_TEST(bucket(both, 199 + k) == static_cast<long>(k));  // element 199 is the distance 0
    if (k > 0) BOOST_TEST(bucket(both, 199 - k) == static_cast<long>(16 + k));
  }
  BOOST_TEST(bucket(causal, 199) == 31);
  BOOST_TEST(bucket(both, 398) == 15);
  BOOST_TEST(bucket(both, 0) == 31);
}

BOOST_AUTO_TEST_SUITE_END()
