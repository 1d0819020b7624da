#pragma once
/// The metrics of a model on a split.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config/tasks.h"

namespace heed {

struct Evaluation {
  std::int64_t sentences = 0;         ///< number of sequences; for a language model, of windows
  std::int64_t tokens = 0;            ///< number of labels; seq2seq: target tokens, </s> included
  std::vector<std::string> outputs;   ///< one per source line, if the task produces them
  std::vector<double> probabilities;  ///< probability of each output, if each is one label
  nlohmann::json notes;               ///< further keys of json()
  std::vector<std::string> details;   ///< further lines to print after text()

  double value(Metric metric) const;  ///< NaN if the metric was not computed
  double loss() const { return value(Metric::loss); }
  bool has(Metric metric) const { return figure(metric).has_value(); }
  void set(Metric metric, double value) { values_[static_cast<std::size_t>(metric)] = value; }

  nlohmann::json json() const;
  /// "loss 1.2340  perplexity 3.435  …"
  std::string text() const;

 private:
  const std::optional<double>& figure(Metric metric) const {
    return values_[static_cast<std::size_t>(metric)];
  }
  std::array<std::optional<double>, metric_table.size()> values_;
};

/// The value of a metric for display: "0.4321", "95.20 %".
std::string text_of(Metric metric, double value);

/// Whether `value` is better than `best`. A finite value is better than none; NaN and infinity are
/// never better.
bool is_better(Metric metric, double value, std::optional<double> best);

}  // namespace heed
