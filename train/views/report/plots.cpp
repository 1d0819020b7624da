#include "train/views/report/plots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/distance_bias.h"
#include "nn/layer_name.h"
#include "nn/layers/activations.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "optim/schedule.h"
#include "train/loop/step.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"
#include "train/views/draw/chart.h"
#include "train/views/draw/heat_map.h"
#include "train/views/report/course_plots.h"

namespace heed {

namespace {

/// The line through the points (i, f(i)) for i = 0 … n − 1.
Line curve(const std::string& name, int colour, std::int64_t n, const auto& f) {
  Line line{name, colour, false, {}};
  for (std::int64_t i = 0; i < n; ++i) line.points.push_back({static_cast<double>(i), f(i)});
  return line;
}

/// A matrix with a title, the names of its axes and a scale of its values, drawn as a square if it
/// has as many rows as columns, otherwise twice as wide as high.
Drawing titled_map(const std::string& title, const HeatMap& map, const std::string& rows,
                   const std::string& columns, const HeatScale& scale) {
  constexpr double top = 26, left = 28, right = 14, height = 190, below = 40;
  const double width = map.rows == map.columns ? height : 2 * height;
  const double title_width = 7.2 * static_cast<double>(character_count(title));
  const Drawing key = drawn(scale);
  return {
      left + std::max({width, title_width, key.width}) + right, top + height + below,
      svg("<g transform=\"translate({} {})\"><text class=\"title\" x=\"0\" "
          "y=\"-9\">{}</text>\n{}<rect class=\"frame\" width=\"{}\" "
          "height=\"{}\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
          "<text transform=\"translate(-7 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n"
          "<g transform=\"translate(0 {})\">\n{}</g></g>\n",
          left, top, xml_text(title),
          heat_cells(map, width / static_cast<double>(map.columns),
                     height / static_cast<double>(map.rows)),
          width, height, width / 2, height + 14, columns, height / 2, rows, height + 20, key.body)};
}

// ---- positions ----------------------------------------------------------------------------------

double dot(const real* a, const real* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

/// The encoding, or some of its positions and pairs of dimensions if it has more than 128 of them:
/// means would draw a sine and a cosine as one value, which is neither.
Drawing encoding_map(const Array& pe) {
  constexpr std::int64_t max_extent = 128;
  const std::int64_t length = pe.rows(), d = pe.cols();
  const std::int64_t row_step = (length + max_extent - 1) / max_extent,
                     pair_step = (d + max_extent - 1) / max_extent;
  HeatMap map{0, 0, {}, 2};
  for (std::int64_t p = 0; p < length; p += row_step) {
    ++map.rows;
    for (std::int64_t i = 0; i < d; ++i) {
      if (i / 2 % pair_step == 0) map.values.push_back(static_cast<float>(pe.row(p)[i]) + 1);
    }
  }
  map.columns = std::ssize(map.values) / map.rows;
  std::string title = fmt::format("sinusoidal: PE, {} positions × {} dimensions", length, d);
  if (row_step > 1) title += fmt::format("; every {}th position", row_step);
  if (pair_step > 1) title += fmt::format("; one of {} pairs of dimensions", pair_step);
  return titled_map(title, map, "position", "dimension", {"−1", "1", "PE"});
}

void add_sinusoidal(std::vector<Drawing>& all, std::int64_t d, std::int64_t length) {
  const Array pe = sinusoids(0, length, d);
  all.push_back(encoding_map(pe));
  Chart products{.title = "sinusoidal: PE(p) · PE(p + k), the same for every p", .x_label = "k"};
  for (const std::int64_t p : {std::int64_t{0}, length / 2}) {
    products.lines.push_back(
        curve(fmt::format("p = {}", p), p == 0 ? 0 : 1, length - p,
              [&](std::int64_t k) { return dot(pe.row(p), pe.row(p + k), d); }));
  }
  all.push_back(drawn(products));
  Chart waves{.title = "sinusoidal: wavelength of each pair, 2π · 10000^(2i/d)",
              .x_label = "i",
              .y_label = "positions",
              .log_y = true};
  waves.lines.push_back(curve("", 0, d / 2, [&](std::int64_t i) {
    return 2 * std::numbers::pi *
           std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(d));
  }));
  all.push_back(drawn(waves));
}

void add_rotary(std::vector<Drawing>& all, const ModelOptions& model, std::int64_t length) {
  const std::int64_t size = model.d_model / model.heads;
  Chart chart{
      .title = fmt::format("rotary: score of a query and an equal key (head size {})", size),
      .x_label = "distance",
      .y_label = "share of the score at distance 0"};
  int colour = 0;
  for (const double base : {model.rotary_base, 100.0}) {
    chart.lines.push_back(
        curve(fmt::format("base {}", base), colour++, length, [&](std::int64_t k) {
          double sum = 0;
          for (std::int64_t i = 0; i < size / 2; ++i)
            sum += std::cos(static_cast<double>(k) * std::pow(base, -2.0 * static_cast<double>(i) /
                                                                        static_cast<double>(size)));
          return sum / static_cast<double>(std::max<std::int64_t>(size / 2, 1));
        }));
  }
  all.push_back(drawn(chart));
}

void add_distances(std::vector<Drawing>& all, const ModelOptions& model, std::int64_t length) {
  Chart alibi{.title = fmt::format("ALiBi: biases of the scores; heads: {}", model.heads),
              .x_label = "distance"};
  for (std::int64_t h = 0; h < model.heads; ++h) {
    const double slope = Alibi::slope(h, model.heads);
    alibi.lines.push_back(curve(fmt::format("head {}", h), static_cast<int>(h), length,
                                [&](std::int64_t k) { return -slope * static_cast<double>(k); }));
  }
  all.push_back(drawn(alibi));
  Chart buckets{.title = "T5: the bucket of a distance",
                .x_label = "position of the query − position of the key"};
  int colour = 0;
  for (const bool causal : {true, false}) {
    const DistanceBias bias(Tensor(Array::zeros({32, 1})), causal);
    Line line{causal ? "causal" : "both directions", colour++, false, {}};
    for (std::int64_t k = causal ? 0 : 1 - 2 * length; k < 2 * length; ++k)
      line.points.push_back({static_cast<double>(k), static_cast<double>(bias.bucket(k))});
    buckets.lines.push_back(std::move(line));
  }
  all.push_back(drawn(buckets));
}

std::vector<Drawing> position_plots(const Config& config, std::int64_t length) {
  std::vector<Drawing> all;
  add_sinusoidal(all, config.model->d_model, length);
  add_rotary(all, config.model, length);
  add_distances(all, config.model, length);
  return all;
}

// ---- schedules ----------------------------------------------------------------------------------

std::vector<Drawing> schedule_plots(const Config& config, std::int64_t) {
  constexpr std::int64_t points = 400, default_steps = 10'000;
  const std::int64_t end = config.optim.schedule.steps > 0 ? config.optim.schedule.steps
                           : config.train.steps > 0        ? config.train.steps
                                                           : default_steps;
  const auto line = [&](OptimOptions optim, const std::string& name, int colour) {
    Line result{name, colour, false, {}};
    for (std::int64_t i = 0; i <= points; ++i) {
      const std::int64_t step = std::max<std::int64_t>(i * end / points, 1);
      result.points.push_back({static_cast<double>(step), learning_rate(optim, step, end)});
    }
    return result;
  };
  Chart chosen{.title = fmt::format("learning rate: {}, peak {}, warmup {}",
                                    name_of(config.optim.schedule.name), config.optim.lr,
                                    warmup_steps(config.optim.schedule, end)),
               .x_label = "step",
               .y_low = 0};
  Chart all{.title = "all schedules with the same peak and warmup", .x_label = "step", .y_low = 0};
  chosen.lines.push_back(line(config.optim, "", 0));
  int colour = 0;
  for (const std::string_view name : names_of(ScheduleKind{})) {
    OptimOptions optim = config.optim;
    optim.schedule.name = static_cast<ScheduleKind>(colour);
    all.lines.push_back(line(optim, std::string(name), colour++));
  }
  return {drawn(chosen), drawn(all)};
}

// ---- masks --------------------------------------------------------------------------------------

HeatMap mask_of(const Pattern& pattern, std::int64_t length) {
  Stretches stretches;
  pattern({0, 0, length, length}, stretches);
  HeatMap map{length, length, std::vector<float>(static_cast<std::size_t>(length * length)), 1};
  for (std::size_t s = 0; s < stretches.size(); ++s) {
    for (std::int64_t i = 0; i < length; ++i) {
      const KeyRange& keys = stretches.rows(s)[i];
      for (std::int64_t j = keys.begin; j < keys.end; ++j) map.values[i * length + j] = 1;
    }
  }
  return map;
}

std::vector<Drawing> mask_plots(const Config& config, std::int64_t length) {
  std::vector<Drawing> all;
  // Default sizes are limited because they exceed most drawings. Sizes from the config are drawn as
  // they are.
  AttentionChoice choice = config.model->attention;
  const AttentionChoice usual;
  if (choice.window == usual.window) choice.window = std::min(usual.window, length / 4);
  if (choice.block == usual.block)
    choice.block = std::min(usual.block, std::max<std::int64_t>(length / 16, 1));
  for (std::size_t i = 0; i < pattern_table.size(); ++i) {
    const PatternInfo& pattern = pattern_table[i];
    if (i > 0 && pattern.make == nullptr) continue;  // its mask is that of the first pattern
    choice.pattern = static_cast<PatternKind>(i);
    const std::string size = pattern.size != nullptr ? pattern.size(choice) : "";
    for (const bool causal : {false, true})
      all.push_back(titled_map(fmt::format("{}{}{}", pattern.name, size, causal ? ", causal" : ""),
                               mask_of(*make_pattern(choice, causal), length), "query", "key",
                               {"not read", "read", "", 1}));
  }
  return all;
}

// ---- activations --------------------------------------------------------------------------------

std::vector<Drawing> activation_plots(const Config&, std::int64_t) {
  Chart values{.title = "activations", .x_label = "x"};
  Chart slopes{.title = "derivatives of the activations", .x_label = "x"};
  Chart gated{.title = "gated activations f(a) · b with a = b = x", .x_label = "x"};
  Chart gated_slopes{.title = "derivatives of f(x) · x of the gated activations", .x_label = "x"};
  for (std::size_t i = 0; i < open_names(Activation{}).built_in(); ++i) {
    const auto activation = static_cast<Activation>(i);
    const std::optional<UnaryFunction> gate = gate_of(activation);
    const UnaryFunction f = gate.value_or(static_cast<UnaryFunction>(i));
    Chart &chart = gate ? gated : values, &slope_chart = gate ? gated_slopes : slopes;
    const int colour = static_cast<int>(chart.lines.size());
    Line value{std::string(name_of(activation)), colour, false, {}}, slope = value;
    for (int k = -80; k <= 80; ++k) {
      const double x = k / 20.0, y = unary_value(f, x), dy = unary_derivative(f, x, y);
      value.points.push_back({x, gate ? x * y : y});
      slope.points.push_back({x, gate ? y + x * dy : dy});
    }
    chart.lines.push_back(std::move(value));
    slope_chart.lines.push_back(std::move(slope));
  }
  return {drawn(values), drawn(slopes), drawn(gated), drawn(gated_slopes)};
}

// ---- layers -------------------------------------------------------------------------------------

/// The gradient norm of each layer of each stack at the first step, by the name of the stack, such as
/// "encoder", for a batch of random sequences.
std::map<std::string, std::vector<double>> norms_by_layer(const Config& config,
                                                          std::int64_t length) {
  constexpr std::int64_t sequences = 32, vocabulary = 32;
  const VocabularySizes sizes{vocabulary, vocabulary};
  const std::unique_ptr<Model> model = build_to_train(config, sizes);
  Random random({config.seed, Stream::init, 1, 0});
  const Batch batch =
      make_task(config)->random_batch(sequences, length, length, sizes, [&](std::int64_t known) {
        return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(known)));
      });
  const Gradients gradients = shard_gradients(
      *model, batch, 0, 1, static_cast<double>(sequences * length), step_options(config), nullptr);
  std::map<std::string, std::vector<double>> norms;
  std::string last;
  for (const NamedTensor& p : model->parameters()) {
    const std::string layer = layer_of(p.name);
    const std::size_t stack = layer.find(".layers.");
    if (stack == std::string::npos) continue;
    std::vector<double>& squares = norms[layer.substr(0, stack)];
    if (layer != last) squares.push_back(0);  // the parameters of a layer follow one another
    last = layer;
    const Array gradient = gradients[p.tensor];
    squares.back() += dot(gradient.data(), gradient.data(), gradient.size());
  }
  for (auto& [stack, values] : norms)
    for (double& value : values) value = std::sqrt(value);
  return norms;
}

/// A chart for pre and for post norm. Values are rounded, so that rounding errors of the processor
/// do not change the drawing.
std::vector<Drawing> layer_plots(const Config& config, std::int64_t length) {
  std::vector<Drawing> all;
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    Config changed = config;
    changed.model->norm = place;
    Chart chart{
        .title = fmt::format("{} norm: gradient norm by layer; last layer: 1", name_of(place)),
        .x_label = "layer",
        .y_low = 0};
    for (const auto& [stack, norms] : norms_by_layer(changed, length)) {
      chart.lines.push_back(
          curve(stack, static_cast<int>(chart.lines.size()), std::ssize(norms),
                [&](std::int64_t i) { return std::round(100 * norms[i] / norms.back()) / 100; }));
    }
    all.push_back(drawn(chart));
  }
  return all;
}

using Plots = std::vector<Drawing> (*)(const Config&, std::int64_t);

/// A drawing that depends on no config.
template <std::vector<Drawing> (*plots)()>
std::vector<Drawing> fixed(const Config&, std::int64_t) {
  return plots();
}

constexpr std::array<std::pair<std::string_view, Plots>, 12> families{{
    {"positions", position_plots},
    {"schedule", schedule_plots},
    {"softmax", fixed<softmax_plots>},
    {"masks", mask_plots},
    {"activations", activation_plots},
    {"layers", layer_plots},
    {"gradcheck", fixed<gradcheck_plots>},
    {"scores", fixed<score_plots>},
    {"loss", fixed<loss_plots>},
    {"tiles", fixed<tile_plots>},
    {"beam", fixed<beam_plots>},
    {"cache", fixed<cache_plots>},
}};

}  // namespace

std::vector<std::string> plot_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : families) names.emplace_back(name);
  return names;
}

std::vector<Drawing> plots_of(std::string_view name, const Config& config, std::int64_t length) {
  for (const auto& [family, make] : families)
    if (family == name) return make(config, length);
  throw Error(Exit::usage, "{}: no such plot; available: {}", name, fmt::join(plot_names(), ", "));
}

}  // namespace heed
