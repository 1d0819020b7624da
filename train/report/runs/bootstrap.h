#pragma once
/// How much a metric would vary between test sets of the same kind, estimated by bootstrap resampling
/// (Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation"; as in sacreBLEU,
/// Post 2018).
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "train/config/tasks.h"
#include "train/run/outputs.h"

namespace heed {

/// A few numbers of each sample, from whose sums a metric of the corpus is computed.
struct SampleStatistics {
  std::size_t width = 0;       ///< numbers of a sample
  std::vector<double> values;  ///< [samples, width]
  /// The metric, in the unit of metrics.jsonl, from sums over `samples` samples.
  std::function<double(std::span<const double> sums, std::size_t samples)> score;

  std::size_t samples() const { return width > 0 ? values.size() / width : 0; }
  /// The metric of some of the samples.
  double of(std::span<const std::uint32_t> chosen) const;
};

/// Unset for metrics that the outputs do not determine, such as the loss.
std::optional<SampleStatistics> statistics_of(Metric metric, std::span<const SampleOutput> outputs,
                                              BleuTokenizer tokenizer);

/// The metric on each of 1,000 bootstrap samples of the test set. They depend only on its size, so
/// two models with outputs for the same test set are compared on the same bootstrap samples.
std::vector<double> resampled(const SampleStatistics& statistics);

struct Interval {
  double low = 0, high = 0;
};
/// The interval of the middle 95 % of the values.
Interval interval_of(std::vector<double> values);

/// The probability of a difference at least as large as `difference` under the null hypothesis that
/// the two models are equally good:
///   p = (1 + #{|dᵢ − mean d| ≥ |difference|}) / (1 + n), dᵢ the difference on bootstrap sample i
/// sacreBLEU counts > in place of ≥, which differs only for equal outputs, where p is 1 here.
double p_value(std::span<const double> first, std::span<const double> second, double difference);

}  // namespace heed
