#include "train/views/report/runs/output_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "autograd/base/random.h"
#include "train/metrics/chrf.h"
#include "train/metrics/words.h"
#include "train/views/draw/heat_map.h"

namespace heed {

namespace {

constexpr std::size_t max_samples = 6;  // maximum number of samples in a group

bool is_right(const SampleOutput& sample) { return sample.output == sample.target; }

std::vector<std::size_t> numbers(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// The value by which outputs are ranked: the score, negated for a wrong label.
double goodness(const SampleOutput& sample) {
  const double score = sample_score(sample);
  return sample.probability && !is_right(sample) ? -score : score;
}

}  // namespace

double sample_score(const SampleOutput& sample) {
  if (sample.probability) return *sample.probability;
  return chrf_score(count_chrf(sample.output, sample.target));
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> chosen_samples(
    std::span<const SampleOutput> outputs) {
  std::vector<double> values;
  for (const SampleOutput& sample : outputs) values.push_back(goodness(sample));
  std::vector<std::size_t> order = numbers(outputs.size());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  const auto n = static_cast<std::ptrdiff_t>(std::min(max_samples, order.size()));
  const std::vector<std::size_t> worst(order.begin(), order.begin() + n),
      best(order.rbegin(), order.rbegin() + n);
  std::vector<std::size_t> some;
  Random random{RandomKey{.seed = 1, .stream = Stream::check}};
  for (std::ptrdiff_t i = 0; i < n; ++i)
    some.push_back(random.below(static_cast<std::uint32_t>(outputs.size())));
  return {{"Worst outputs", worst}, {"Random outputs", some}, {"Best outputs", best}};
}

std::vector<std::size_t> most_confident_mistakes(std::span<const SampleOutput> outputs,
                                                 std::size_t max_count) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!is_right(outputs[i])) wrong.push_back(i);
  std::ranges::stable_sort(wrong, std::greater<>(),
                           [&](std::size_t i) { return outputs[i].probability.value_or(0); });
  wrong.resize(std::min(wrong.size(), max_count));
  return wrong;
}

Chart score_by_length(Metric metric, std::span<const SampleOutput> outputs,
                      std::span<const LengthSeries> runs) {
  std::vector<std::size_t> lengths;
  for (const SampleOutput& sample : outputs) lengths.push_back(split_words(sample.target).size());
  std::vector<std::size_t> order = numbers(outputs.size());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lengths[i]; });
  const MetricInfo& info = info_of(metric);
  Chart chart{.title = fmt::format("{} by length", info.label),
              .x_label = "words in the target (number of lines)",
              .y_label = info.percent ? "%" : "",
              .y_low = 0};
  // At most six groups of about equal size; targets of the same length are in the same group.
  const std::size_t wanted = std::max<std::size_t>((order.size() + 5) / 6, 1);
  double place = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = std::min(begin + wanted, order.size());
    while (end < order.size() && lengths[order[end]] == lengths[order[end - 1]]) ++end;
    const std::vector<std::uint32_t> group(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                           order.begin() + static_cast<std::ptrdiff_t>(end));
    const std::size_t low = lengths[order[begin]], high = lengths[order[end - 1]];
    const std::string name = low == high ? fmt::format("{}", low) : fmt::format("{}–{}", low, high);
    const double width = 0.8 / static_cast<double>(std::max<std::size_t>(runs.size(), 1));
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const double value = runs[r].statistics->of(group), left = place + 0.1 + width * double(r);
      chart.bars.push_back(
          {static_cast<int>(r), left, left + width, (info.percent ? 100 : 1) * value,
           fmt::format("{2} (words: {0}, lines: {1})", name, group.size(), value)});
    }
    chart.x_ticks.push_back({place + 0.5, fmt::format("{} ({})", name, group.size())});
    ++place;
    begin = end;
  }
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (!runs[r].name.empty()) chart.legend.emplace_back(static_cast<int>(r), runs[r].name);
  return chart;
}

Chart calibration(std::span<const SampleOutput> outputs) {
  constexpr std::size_t groups = 10;
  struct Group {
    double probability = 0, right = 0, count = 0;
  };
  std::array<Group, groups> all;
  for (const SampleOutput& sample : outputs) {
    const double p = sample.probability.value_or(0);
    Group& group = all[std::min(static_cast<std::size_t>(std::max(p, 0.0) * groups), groups - 1)];
    group.probability += p;
    group.right += is_right(sample) ? 1 : 0;
    ++group.count;
  }
  Chart chart{.x_label = "confidence: probability of the predicted label",
              .y_label = "accuracy",
              .y_low = 0,
              .y_high = 1,
              .lines = {{"perfect calibration", 7, false, {{0, 0}, {1, 1}}}}};
  double error = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    const Group& g = all[i];
    if (g.count == 0) continue;
    error += std::abs(g.right - g.probability) / static_cast<double>(outputs.size());
    chart.bars.push_back({0, static_cast<double>(i) / groups + 0.005,
                          static_cast<double>(i + 1) / groups - 0.005, g.right / g.count,
                          fmt::format("samples: {}, confidence: {:.3f}, accuracy: {:.3f}", g.count,
                                      g.probability / g.count, g.right / g.count)});
  }
  chart.title = fmt::format("calibration (expected calibration error {:.3f})", error);
  return chart;
}

Drawing confusion_map(std::span<const SampleOutput> outputs) {
  constexpr std::size_t max_labels = 40;
  std::map<std::string, std::size_t> counts;
  for (const SampleOutput& sample : outputs) {
    ++counts[sample.target];
    counts[sample.output] += 0;
  }
  std::vector<std::string> names;
  for (const auto& [name, n] : counts) names.push_back(name);
  std::ranges::stable_sort(names, std::greater<>(),
                           [&](const std::string& name) { return counts[name]; });
  names.resize(std::min(names.size(), max_labels));
  std::ranges::sort(names);
  const auto n = static_cast<std::int64_t>(names.size());
  HeatMap map{n, n, std::vector<float>(names.size() * names.size()), 1};
  for (const SampleOutput& sample : outputs) {
    const auto row = std::ranges::find(names, sample.target),
               column = std::ranges::find(names, sample.output);
    if (row == names.end() || column == names.end()) continue;
    map.values[static_cast<std::size_t>((row - names.begin()) * n + (column - names.begin()))] +=
        1 / static_cast<float>(counts[sample.target]);
  }
  return labelled_map(map, names, names);
}

}  // namespace heed
