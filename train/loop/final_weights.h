#pragma once
/// The choice of a run's final weights.
#include <fmt/format.h>

#include "train/tasks/evaluation.h"

namespace heed {

/// The candidates: the mean of the last checkpoints (train/run/average.h), the best checkpoint, and
/// the last. The mean is chosen if it is better than the best checkpoint or if there are no
/// validation data; otherwise the best checkpoint or, without one, the last.
struct WeightsChoice {
  Metric metric = Metric::loss;
  std::optional<double> best =
      {};  ///< value of the metric for the best checkpoint, if there is one
  std::int64_t best_step = 0;
  std::vector<std::int64_t> mean_of_steps = {};  ///< newest first; empty: there is no mean
  std::optional<double> mean = {};  ///< value for the mean; nullopt: there are no validation data

  bool is_mean() const {
    return !mean_of_steps.empty() && (!mean || is_better(metric, *mean, best));
  }
  /// Compares the mean with the best checkpoint. Requires `mean`.
  std::string text() const {
    return fmt::format(
        "the mean of {} checkpoints has {} {:.7g} on the validation data (best checkpoint: {}): "
        "the {} is used",
        mean_of_steps.size(), info_of(metric).name, mean.value(),
        best ? fmt::format("{:.7g}", *best) : "none",
        is_mean() ? "mean"
        : best    ? "best checkpoint"
                  : "last checkpoint");
  }
  /// Fields of the record in metrics.jsonl.
  nlohmann::json json() const {
    nlohmann::json fields{{"metric", info_of(metric).name}};
    if (best) fields.update({{"best", *best}, {"best_step", best_step}});
    if (!mean_of_steps.empty()) fields["mean_of_steps"] = mean_of_steps;
    if (mean) fields["average"] = *mean;
    return fields;
  }
};

}  // namespace heed
