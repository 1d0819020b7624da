#include "train/views/report/course_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>

#include "train/views/draw/chart.h"

namespace heed {

namespace {

/// softmax(scores / temperature)
std::vector<double> softmax_of(const std::vector<double>& scores, double temperature = 1) {
  const double largest = std::ranges::max(scores);
  std::vector<double> weights;
  double sum = 0;
  for (const double s : scores) {
    weights.push_back(std::exp((s - largest) / temperature));
    sum += weights.back();
  }
  for (double& w : weights) w /= sum;
  return weights;
}

/// The bars of one series of several: bar i stands at `place` of `places` in the interval
/// [i, i + 1].
void add_bars(Chart& chart, const std::string& name, const std::vector<double>& values, int place,
              int places, int colour) {
  const double width = 0.8 / places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double left = static_cast<double>(i) + 0.1 + width * place;
    chart.bars.push_back(
        {colour, left, left + width, values[i], fmt::format("{}: {:.4f}", name, values[i])});
  }
  chart.legend.emplace_back(colour, name);
}

/// A tick in the middle of each interval [i, i + 1].
std::vector<Tick> middle_ticks(const std::vector<std::string>& texts) {
  std::vector<Tick> ticks;
  for (const std::string& text : texts)
    ticks.push_back({static_cast<double>(ticks.size()) + 0.5, text});
  return ticks;
}

/// A horizontal line over [0, width].
Line level(const std::string& name, int colour, double width, double y) {
  return {name, colour, false, {{0, y}, {width, y}}};
}

}  // namespace

std::vector<Drawing> softmax_plots() {
  const std::vector<double> scores{3, 2, 1, 0, -1};
  Chart bars{.title = "softmax of the scores 3, 2, 1, 0, −1 at temperature T",
             .x_label = "score",
             .y_low = 0,
             .y_high = 1,
             .x_ticks = middle_ticks({"3", "2", "1", "0", "-1"})};
  Chart entropy{.title = "entropy of the softmax weights, nats (at most ln 5)",
                .x_label = "T",
                .log_x = true,
                .y_low = 0};
  constexpr std::array temperatures{0.25, 0.5, 1.0, 2.0, 8.0};
  for (int t = 0; t < std::ssize(temperatures); ++t)
    add_bars(bars, fmt::format("T = {}", temperatures[t]), softmax_of(scores, temperatures[t]), t,
             static_cast<int>(temperatures.size()), t);
  Line line{"", 0, false, {}};
  for (double t = 0.05; t <= 50; t *= 1.05) {
    double h = 0;
    for (const double w : softmax_of(scores, t)) h -= w > 0 ? w * std::log(w) : 0;
    line.points.push_back({t, h});
  }
  entropy.lines.push_back(std::move(line));
  return {drawn(bars), drawn(entropy)};
}

// ---- gradcheck ----------------------------------------------------------------------------------

namespace {

/// The largest error of a difference formula for the derivative of 1/x at x = 2, …, 49, computed in
/// the precision T. Formulas: Abramowitz and Stegun, "Handbook of Mathematical Functions", 25.3.
template <class T>
double difference_error(int points, double step) {
  double largest = 0;
  const T h = static_cast<T>(step);
  for (int i = 2; i < 50; ++i) {
    const T x = static_cast<T>(i);
    const auto f = [&](T t) { return 1 / (x + t); };
    const T slope = points == 3 ? (f(h) - f(-h)) / (2 * h)
                                : (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h);
    largest = std::max(largest, std::abs(double{slope} + 1.0 / (i * i)));
  }
  return largest;
}

/// The errors over steps of 10⁻¹² to 10⁻¹, and dashed their estimates at x = 2, where 1/x is 1/2,
/// |f‴| 6/16 and |f⁽⁵⁾| 120/64.
template <class T>
Drawing error_chart(const std::string& precision) {
  Chart chart{.title = fmt::format("largest error of (1/x)′ at x = 2, …, 49 in {}", precision),
              .x_label = "step h",
              .y_label = "error",
              .log_x = true,
              .log_y = true,
              .y_low = 1e-14,
              .y_high = 1};
  std::vector<double> steps;
  for (double power = 1e12; power >= 10; power /= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if (digit / power <= 0.1) steps.push_back(digit / power);
  const auto add = [&](const std::string& name, int colour, const auto& error) {
    Line line{name, colour, false, {}};
    for (const double h : steps) line.points.push_back({h, error(h)});
    chart.lines.push_back(std::move(line));
  };
  constexpr int dashed = palette_size;
  constexpr double epsilon = std::numeric_limits<T>::epsilon() / 2;
  add("central difference", 0, [](double h) { return difference_error<T>(3, h); });
  add("five points", 1, [](double h) { return difference_error<T>(5, h); });
  add("h² |f‴| / 6", dashed, [](double h) { return h * h / 16; });
  add("h⁴ |f⁽⁵⁾| / 30", dashed + 1, [](double h) { return h * h * h * h / 16; });
  add("ε |f| / h", dashed + 7, [=](double h) { return epsilon / 2 / h; });
  return drawn(chart);
}

}  // namespace

std::vector<Drawing> gradcheck_plots() {
  return {error_chart<double>("double, ε = 2⁻⁵³"), error_chart<float>("float32, ε = 2⁻²⁴")};
}

// ---- scores -------------------------------------------------------------------------------------

namespace {

/// A vector of the plane: its length and its angle in degrees.
struct Polar {
  double length, angle;
  Point tip() const {
    const double radians = angle * std::numbers::pi / 180;
    return {length * std::cos(radians), length * std::sin(radians)};
  }
};

constexpr Polar query{2, 20}, first_key{1, 0}, second_key{1, 60};

double score(const Polar& q, const Polar& k) {
  return q.length * k.length * std::cos((q.angle - k.angle) * std::numbers::pi / 180);
}

/// The plane with the vectors, their angles and, dashed, the projections of the keys on the query.
Drawing plane() {
  constexpr double left = 56, top = 26, width = 400, height = 190, unit = 150;
  const auto at = [](const Point& p) { return svg("{} {}", 50 + unit * p.x, 165 - unit * p.y); };
  std::string body = svg(
      "<g transform=\"translate({} {})\">\n<text class=\"title\" x=\"0\" y=\"-9\">q · k₁ = 2 · 1 · "
      "cos 20° = {}, q · k₂ = 2 · 1 · cos 40° = {}</text>\n<rect class=\"frame\" width=\"{}\" "
      "height=\"{}\"/>\n",
      left, top, score(query, first_key), score(query, second_key), width, height);
  for (const int i : {0, 1, 2})
    body +=
        svg("<path class=\"grid\" d=\"M{} 0v{}\"/><text x=\"{}\" y=\"{}\" "
            "text-anchor=\"middle\">{}</text>\n",
            50 + unit * i, height, 50 + unit * i, height + 14, i);
  for (const int i : {0, 1})
    body +=
        svg("<path class=\"grid\" d=\"M0 {}h{}\"/><text x=\"-6\" y=\"{}\" "
            "text-anchor=\"end\">{}</text>\n",
            165 - unit * i, width, 168.5 - unit * i, i);
  for (const Polar& key : {first_key, second_key})
    body += svg("<path class=\"line s7 second\" d=\"M{}L{}\"/>\n", at(key.tip()),
                at(Polar{score(query, key) / query.length, query.angle}.tip()));
  for (const auto& [key, radius, text] :
       {std::tuple(first_key, 0.4, "20°"), std::tuple(second_key, 0.25, "40°")}) {
    const Polar from{radius, std::min(key.angle, query.angle)},
        to{radius, std::max(key.angle, query.angle)},
        label{radius + 0.05, (key.angle + query.angle) / 2};
    body += svg("<path class=\"line s7\" d=\"M{}A{} {} 0 0 0 {}\"/>\n", at(from.tip()),
                unit * radius, unit * radius, at(to.tip()));
    body += svg("<text transform=\"translate({})\" y=\"3.5\">{}</text>\n", at(label.tip()), text);
  }
  int colour = 0;
  for (const auto& [vector, name] :
       {std::pair(first_key, "k₁"), std::pair(second_key, "k₂"), std::pair(query, "q")}) {
    const Point tip = vector.tip();
    body += svg(
        "<path class=\"line s{}\" d=\"M{}L{}\"/><path class=\"bar s{}\" transform=\"translate({}) "
        "rotate({})\" d=\"M0 0l-9 4v-8z\"/><text transform=\"translate({})\" x=\"6\" "
        "y=\"-4\">{}</text>\n",
        colour, at({0, 0}), at(tip), colour, at(tip), -vector.angle, at(tip), name);
    ++colour;
  }
  return {left + width + 14, top + height + 40, body + "</g>\n"};
}

/// The weights of the keys over x in [low, high], where vectors(x) is a query and a second key. Dots
/// stand at `drawn_at`, the value in the drawing of the plane.
Drawing weight_chart(const std::string& title, const std::string& x_label, double low, double high,
                     double drawn_at, const auto& vectors, const std::vector<Tick>& ticks = {}) {
  Chart chart{.title = title,
              .x_label = x_label,
              .y_label = "weight",
              .y_low = 0,
              .y_high = 1,
              .x_ticks = ticks};
  chart.lines = {{"k₁", 0, false, {}}, {"k₂", 1, false, {}}};
  const auto weights = [&](double x) {
    const auto [q, k] = vectors(x);
    return softmax_of({score(q, first_key), score(q, k)});
  };
  constexpr int pieces = 200;
  for (int i = 0; i <= pieces; ++i) {
    const double x = low + (high - low) * i / pieces;
    for (std::size_t key = 0; key < 2; ++key)
      chart.lines[key].points.push_back({x, weights(x)[key]});
  }
  for (std::size_t key = 0; key < 2; ++key) {
    const double weight = weights(drawn_at)[key];
    chart.dots.push_back(
        {static_cast<int>(key), {drawn_at, weight}, fmt::format("weight {:.3f}", weight)});
  }
  return drawn(chart);
}

}  // namespace

std::vector<Drawing> score_plots() {
  return {plane(),
          weight_chart("the query turns", "angle of q, degrees", -180, 180, query.angle,
                       [](double x) {
                         return std::pair(Polar{query.length, x}, second_key);
                       },
                       {{-180, "−180"}, {-90, "−90"}, {0, "0"}, {90, "90"}, {180, "180"}}),
          weight_chart("the query becomes longer", "length of q", 0, 16, query.length,
                       [](double x) {
                         return std::pair(Polar{x, query.angle}, second_key);
                       }),
          weight_chart("the second key becomes longer", "length of k₂", 0, 4, second_key.length,
                       [](double x) {
                         return std::pair(query, Polar{x, second_key.angle});
                       })};
}

// ---- loss ---------------------------------------------------------------------------------------

std::vector<Drawing> loss_plots() {
  const std::vector<double> logits{3, 1, 0.5, 0, -1}, p = softmax_of(logits);
  constexpr std::size_t target = 0;
  const std::vector<Tick> ticks = middle_ticks({"0 (right)", "1", "2", "3", "4"});
  const Line axis = level("", 7, static_cast<double>(p.size()), 0);
  Chart values{.title = "probabilities p and targets q",
               .x_label = "class",
               .y_low = 0,
               .y_high = 1,
               .x_ticks = ticks,
               .lines = {axis}};
  Chart differences{.title = "p − q, the gradient of the logits",
                    .x_label = "class",
                    .y_low = -0.25,
                    .y_high = 0.15,
                    .x_ticks = ticks,
                    .lines = {axis}};
  add_bars(values, "p", p, 0, 3, 0);
  int series = 0;
  for (const double epsilon : {0.0, 0.1}) {
    std::vector<double> q, difference;
    for (std::size_t j = 0; j < p.size(); ++j) {
      q.push_back((j == target ? 1 - epsilon : 0) + epsilon / static_cast<double>(p.size()));
      difference.push_back(p[j] - q[j]);
    }
    add_bars(values, fmt::format("q, ε = {}", epsilon), q, series + 1, 3, series + 1);
    add_bars(differences, fmt::format("p − q, ε = {}", epsilon), difference, series, 2, series + 1);
    ++series;
  }
  return {drawn(values), drawn(differences)};
}

// ---- tiles --------------------------------------------------------------------------------------

namespace {

/// What online softmax keeps of a row after a tile.
struct TileState {
  double m = -std::numeric_limits<double>::infinity();  ///< largest score so far
  double carried = 0;                                   ///< share of Z from earlier tiles
  double Z = 0, o = 0;  ///< sums of exp(s − m) and of exp(s − m) v
};

/// The states after each tile of `size` scores. Source: Milakov and Gimelshein, "Online Normalizer
/// Calculation for Softmax", 2018.
std::vector<TileState> online_softmax(const std::vector<double>& scores,
                                      const std::vector<double>& values, std::size_t size) {
  std::vector<TileState> states;
  TileState now;
  for (std::size_t begin = 0; begin < scores.size(); begin += size) {
    const std::size_t end = std::min(begin + size, scores.size());
    const double before = now.m;
    for (std::size_t j = begin; j < end; ++j) now.m = std::max(now.m, scores[j]);
    const double factor = std::exp(before - now.m);
    now.Z = now.carried = factor * now.Z;
    now.o *= factor;
    for (std::size_t j = begin; j < end; ++j) {
      now.Z += std::exp(scores[j] - now.m);
      now.o += std::exp(scores[j] - now.m) * values[j];
    }
    states.push_back(now);
  }
  return states;
}

/// The scores in the colours of their tiles, with the running maximum.
Drawing maximum_chart(const std::vector<double>& scores, const std::vector<TileState>& states,
                      std::size_t size) {
  Chart chart{.title = "scores in three tiles, and the maximum m after each tile",
              .x_label = "score",
              .y_low = 0,
              .y_high = 8};
  std::vector<std::string> texts;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto x = static_cast<double>(j);
    chart.bars.push_back({static_cast<int>(j / size), x + 0.15, x + 0.85, scores[j], ""});
    texts.push_back(fmt::format("{}", scores[j]));
  }
  chart.x_ticks = middle_ticks(texts);
  const auto row = static_cast<double>(scores.size());
  Line running{"running maximum", 7, false, {}};
  for (std::size_t t = 0; t < states.size(); ++t) {
    chart.legend.emplace_back(static_cast<int>(t), fmt::format("tile {}", t + 1));
    for (const std::size_t edge : {t, t + 1})
      running.points.push_back({static_cast<double>(edge * size), states[t].m});
  }
  chart.lines = {std::move(running),
                 level("whole row", palette_size + 3, row, std::ranges::max(scores))};
  return drawn(chart);
}

}  // namespace

std::vector<Drawing> tile_plots() {
  const std::vector<double> scores{1, 3, 2, 7, 0, 5}, values{10, 20, 30, 40, 50, 60};
  const std::vector<TileState> states = online_softmax(scores, values, 2);
  // The whole row at once, in two passes.
  const std::vector<double> weights = softmax_of(scores);
  const double largest = std::ranges::max(scores), Z = 1 / std::ranges::max(weights);
  double output = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) output += weights[j] * values[j];
  const auto chart = [&](const std::string& title, double high, double whole) {
    const auto tiles = static_cast<double>(states.size());
    return Chart{.title = title,
                 .x_label = "tile",
                 .y_low = 0,
                 .y_high = high,
                 .x_ticks = middle_ticks({"1", "2", "3"}),
                 .lines = {level("whole row", palette_size + 3, tiles, whole)}};
  };
  std::vector<double> sums, carried, logs, outputs;
  for (const TileState& s : states) {
    sums.push_back(s.Z);
    carried.push_back(s.carried);
    logs.push_back(s.m + std::log(s.Z));
    outputs.push_back(s.o / s.Z);
  }
  Chart sum = chart("sum Z of exp(s − m) after each tile", 1.4, Z);
  add_bars(sum, "scores of this tile", sums, 0, 1, 4);
  add_bars(sum, "earlier tiles, restated for the new m", carried, 0, 1, 0);  // covers a part of Z
  Chart log_sum = chart("log-sum-exp m + ln Z after each tile", 8, largest + std::log(Z));
  add_bars(log_sum, "m + ln Z", logs, 0, 1, 0);
  Chart quotient = chart("o / Z after each tile, for the values 10, 20, …, 60", 50, output);
  add_bars(quotient, "o / Z", outputs, 0, 1, 0);
  return {maximum_chart(scores, states, 2), drawn(sum), drawn(log_sum), drawn(quotient)};
}

// ---- beam ---------------------------------------------------------------------------------------

namespace {

constexpr std::size_t beam_steps = 3;

/// A prefix of a beam search over the tokens a, b and c.
struct Prefix {
  std::string text = {};
  double probability = 1, last = 1;  ///< of the prefix; of its last token after its parent
  std::size_t parent = 0;            ///< index in the previous step
  bool kept = false, greedy = false;
};

/// The extensions of a prefix. The probabilities of a token depend on the token before it alone.
std::vector<Prefix> extended(const Prefix& prefix, std::size_t index) {
  constexpr std::array<std::array<double, 3>, 4> table{
      {{0.5, 0.4, 0.1}, {0.4, 0.35, 0.25}, {0.8, 0.1, 0.1}, {0.3, 0.6, 0.1}}};
  const std::size_t row =
      prefix.text.empty() ? 0 : 1 + static_cast<std::size_t>(prefix.text.back() - 'a');
  std::vector<Prefix> all;
  for (std::size_t token = 0; token < 3; ++token) {
    const double p = table[row][token];
    all.push_back({prefix.text + "abc"[token], prefix.probability * p, p, index});
  }
  return all;
}

/// The prefixes that each step compares, the `width` best of which it keeps; step 0 is the start.
std::vector<std::vector<Prefix>> beam_search(std::size_t width) {
  std::vector<std::vector<Prefix>> steps{{{.kept = true, .greedy = true}}};
  for (std::size_t step = 1; step <= beam_steps; ++step) {
    std::vector<Prefix> grown;
    for (std::size_t i = 0; i < steps.back().size(); ++i) {
      if (!steps.back()[i].kept) continue;
      std::vector<Prefix> children = extended(steps.back()[i], i);
      std::ranges::max_element(children, {}, &Prefix::probability)->greedy = steps.back()[i].greedy;
      grown.insert(grown.end(), children.begin(), children.end());
    }
    std::vector<Prefix*> best;
    for (Prefix& p : grown) best.push_back(&p);
    std::ranges::stable_sort(best, std::ranges::greater(), &Prefix::probability);
    for (std::size_t i = 0; i < std::min(width, best.size()); ++i) best[i]->kept = true;
    steps.push_back(std::move(grown));
  }
  return steps;
}

/// The rows of the nodes: one for each prefix without extensions; others stand at the mean row of
/// their extensions.
std::vector<std::vector<double>> rows_of(const std::vector<std::vector<Prefix>>& steps) {
  std::vector<std::vector<double>> rows;
  for (const auto& step : steps) rows.emplace_back(step.size());
  double next = 0;
  const auto place = [&](const auto& self, std::size_t step, std::size_t i) -> double {
    double sum = 0, children = 0;
    for (std::size_t c = 0; step + 1 < steps.size() && c < steps[step + 1].size(); ++c) {
      if (steps[step + 1][c].parent != i) continue;
      sum += self(self, step + 1, c);
      ++children;
    }
    return rows[step][i] = children > 0 ? sum / children : next++;
  };
  place(place, 0, 0);
  return rows;
}

/// The tree of a beam search, from left to right. Kept prefixes are blue and dropped ones grey; a
/// ring marks those of greedy search.
Drawing beam_tree(std::size_t width) {
  constexpr std::array<double, beam_steps + 1> lefts{14, 78, 172, 332}, texts{26, 40, 106, 112};
  constexpr double top = 56, row_height = 19;
  const std::vector<std::vector<Prefix>> steps = beam_search(width);
  const std::vector<std::vector<double>> rows = rows_of(steps);
  const auto y = [&](std::size_t step, std::size_t i) { return top + row_height * rows[step][i]; };
  std::string edges, nodes =
                         svg("<text class=\"title\" x=\"8\" y=\"17\">beam search of width {}: blue "
                             "prefixes are kept, rings are greedy</text>\n",
                             width);
  double bottom = top;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (step > 0) nodes += svg("<text x=\"{}\" y=\"38\">step {}</text>\n", lefts[step] - 4, step);
    for (std::size_t i = 0; i < steps[step].size(); ++i) {
      const Prefix& p = steps[step][i];
      const std::string_view style = p.kept ? "s0" : "s7";
      std::string text = step == 0 ? "<s>" : fmt::format("{}: {:.4g}", p.text, p.probability);
      if (step > 1)
        text = fmt::format("{}: {:.4g} · {} = {:.4g}", p.text,
                           steps[step - 1][p.parent].probability, p.last, p.probability);
      if (step > 0) {
        const double from = lefts[step - 1] + texts[step - 1] + 8;
        edges += svg("<path class=\"line {}{}\" d=\"M{} {}L{} {}\"/>\n", style,
                     p.kept ? "" : " faint", from, y(step - 1, p.parent), lefts[step], y(step, i));
      }
      if (p.greedy)
        nodes += svg("<circle class=\"line s1\" cx=\"{}\" cy=\"{}\" r=\"6.5\"/>\n", lefts[step],
                     y(step, i));
      nodes +=
          svg("<circle class=\"dot {}\" cx=\"{}\" cy=\"{}\" r=\"3.5\"/><text x=\"{}\" "
              "y=\"{}\">{}</text>\n",
              style, lefts[step], y(step, i), lefts[step] + 10, y(step, i) + 3.5, xml_text(text));
      bottom = std::max(bottom, y(step, i));
    }
  }
  return {lefts.back() + texts.back() + 24, bottom + 20, edges + nodes};
}

}  // namespace

std::vector<Drawing> beam_plots() {
  constexpr std::size_t max_width = 4;
  Chart chart{.title = "probability of the best output that a beam finds",
              .x_label = "width of the beam (1: greedy search)",
              .y_low = 0,
              .y_high = 0.15,
              .lines = {level("", 7, max_width, 0)}};
  std::vector<std::string> widths;
  for (std::size_t width = 1; width <= max_width; ++width) {
    const std::vector<Prefix> last = beam_search(width).back();
    const Prefix& best = *std::ranges::max_element(last, {}, &Prefix::probability);
    const auto left = static_cast<double>(width) - 0.9;
    chart.bars.push_back({0, left, left + 0.8, best.probability,
                          fmt::format("{}: {:.4g}", best.text, best.probability)});
    widths.push_back(fmt::format("{}: {}", width, best.text));
  }
  chart.x_ticks = middle_ticks(widths);
  return {beam_tree(2), drawn(chart)};
}

// ---- cache --------------------------------------------------------------------------------------

std::vector<Drawing> cache_plots() {
  constexpr std::size_t steps = 12;
  std::vector<double> all, kept, with, without;  // rows, after each step
  std::vector<std::string> texts;
  for (std::size_t t = 1; t <= steps; ++t) {
    const auto rows = static_cast<double>(t);
    all.push_back(rows);
    kept.push_back(rows - 1);
    with.push_back(rows);
    without.push_back((without.empty() ? 0 : without.back()) + rows);
    texts.push_back(fmt::format("{}", t));
  }
  Chart step{.title = "keys and values that a step reads, in each layer",
             .x_label = "step",
             .y_low = 0,
             .x_ticks = middle_ticks(texts)};
  add_bars(step, "new: projected in this step", all, 0, 1, 1);
  add_bars(step, "kept in the cache", kept, 0, 1, 0);  // covers the kept part
  Chart total{.title = "rows projected to keys and values so far",
              .x_label = "step",
              .y_low = 0,
              .x_ticks = middle_ticks(texts)};
  add_bars(total, "with the cache", with, 0, 2, 0);
  add_bars(total, "without", without, 1, 2, 1);
  return {drawn(step), drawn(total)};
}

}  // namespace heed
