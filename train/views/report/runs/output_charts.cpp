#include "train/views/report/runs/output_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "autograd/base/random.h"
#include "autograd/io/utf8.h"
#include "train/metrics/chrf.h"
#include "train/metrics/words.h"
#include "train/tasks/evaluation.h"
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
double goodness(SampleScore kind, const SampleOutput& sample) {
  const double score = sample_score(kind, sample);
  return kind == SampleScore::probability && !is_right(sample) ? -score : score;
}

std::vector<std::string> labels_of(SampleScore kind, const std::string& line) {
  std::vector<std::string> all;
  if (kind == SampleScore::words) {
    for (const auto word : split_words(line)) all.emplace_back(word);
    return all;
  }
  for (std::size_t at = 0; at < line.size(); at += all.back().size())
    all.push_back(line.substr(at, std::max<std::size_t>(utf8_length(line, at), 1)));
  return all;
}

/// A number of an object in a record; 0 if it is missing.
double number_of(const nlohmann::json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// The counts of the labels that were predicted for a true label.
const nlohmann::json& predicted_for(const nlohmann::json& record, const std::string& label) {
  static const nlohmann::json none = nlohmann::json::object();
  const auto all = record.find("confusion");
  if (all == record.end() || !all->is_object()) return none;
  const auto found = all->find(label);
  return found != all->end() && found->is_object() ? *found : none;
}

}  // namespace

SampleScore score_kind(const Config& config, std::span<const SampleOutput> outputs) {
  if (!outputs.empty() && outputs.front().probability) return SampleScore::probability;
  if (info_of(config.task).architecture != Architecture::encoder) return SampleScore::chrf;
  return config.tokenizer.kind == TokenizerKind::characters ? SampleScore::characters
                                                            : SampleScore::words;
}

double sample_score(SampleScore kind, const SampleOutput& sample) {
  if (kind == SampleScore::probability) return sample.probability.value_or(0);
  if (kind == SampleScore::chrf) return chrf_score(count_chrf(sample.output, sample.target));
  const std::vector<std::string> found = labels_of(kind, sample.output),
                                 right = labels_of(kind, sample.target);
  double same = 0;
  for (std::size_t i = 0; i < std::min(found.size(), right.size()); ++i)
    same += found[i] == right[i] ? 1 : 0;
  return right.empty() ? 1 : same / static_cast<double>(right.size());
}

std::string score_text(SampleScore kind, const SampleOutput& sample) {
  const double score = sample_score(kind, sample);
  if (kind == SampleScore::chrf) return fmt::format("{:.1f}", score);
  return kind == SampleScore::probability ? fmt::format("{:.3f}", score)
                                          : text_of(Metric::token_accuracy, score);
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> chosen_samples(
    SampleScore kind, std::span<const SampleOutput> outputs) {
  std::vector<double> values;
  for (const SampleOutput& sample : outputs) values.push_back(goodness(kind, sample));
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

std::vector<std::string> shown_labels(const nlohmann::json& record) {
  constexpr std::size_t max_labels = 40;
  std::vector<std::string> names;
  const auto classes = record.find("classes");
  if (classes == record.end() || !classes->is_object()) return names;
  for (const auto& [name, figures] : classes->items()) names.push_back(name);
  std::ranges::stable_sort(names, std::greater<>(), [&](const std::string& name) {
    return number_of((*classes)[name], "occurrences");
  });
  names.resize(std::min(names.size(), max_labels));
  // Alphabetical order, and numbers in ascending order.
  std::ranges::sort(names, {}, [](const std::string& name) {
    const bool number = name.find_first_not_of("0123456789") == std::string::npos;
    return std::pair(number ? name.size() : 0, name);
  });
  return names;
}

std::vector<std::vector<std::string>> label_rows(const nlohmann::json& record,
                                                 std::span<const std::string> labels) {
  std::vector<std::vector<std::string>> rows{{"label", "precision", "recall", "F1", "occurrences"}};
  for (const std::string& label : labels) {
    const nlohmann::json& figures = record.at("classes").at(label);
    rows.push_back({label});
    for (const char* key : {"precision", "recall", "f1"})
      rows.back().push_back(fmt::format("{:.4f}", number_of(figures, key)));
    rows.back().push_back(fmt::format("{}", number_of(figures, "occurrences")));
  }
  return rows;
}

Drawing confusion_map(const nlohmann::json& record, std::span<const std::string> labels) {
  const auto n = std::ssize(labels);
  HeatMap map{n, n, {}, 1};
  MapText text{"true labels", "predicted labels", "fraction of the row; the numbers are counts"};
  for (const std::string& label : labels) {
    const nlohmann::json& predicted = predicted_for(record, label);
    double all = 0;
    for (const auto& [name, count] : predicted.items()) all += number_of(predicted, name);
    for (const std::string& name : labels) {
      const double count = number_of(predicted, name);
      map.values.push_back(static_cast<float>(count / std::max(all, 1.0)));
      text.cells.push_back(count > 0 ? fmt::format("{}", count) : "");
    }
  }
  return labelled_map(map, labels, labels, text);
}

}  // namespace heed
