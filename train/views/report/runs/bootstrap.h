#pragma once
/// The variation of a metric between test sets of the same kind, estimated by bootstrap resampling
/// (Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation"; as in
/// sacreBLEU, Post 2018).
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "train/config/tasks.h"
#include "train/run/outputs.h"

namespace heed {

/// Statistics of each sample, from which a metric of any of the samples follows.
struct SampleStatistics {
  std::size_t samples = 0;
  /// The metric of the samples with these indices, which may repeat, in the unit of metrics.jsonl.
  std::function<double(std::span<const std::uint32_t> chosen)> of;
};

/// The statistics of a metric; nullopt without outputs, or if the outputs do not determine the
/// metric (as for the loss).
std::optional<SampleStatistics> statistics_of(Metric metric, std::span<const SampleOutput> outputs,
                                              BleuTokenizer tokenizer);

/// The metric on each of 1,000 bootstrap samples of the test set. The samples depend only on the
/// size of the test set, so two models are compared on the same bootstrap samples.
std::vector<double> resampled(const SampleStatistics& statistics);

struct Interval {
  double low = 0, high = 0;
};
/// The central interval with 95 % of the values.
Interval interval_of(std::vector<double> values);

/// The probability of a difference at least as large as `difference` under the null hypothesis that
/// the two models are equally good:
///   p = (1 + #{|dᵢ − mean d| ≥ |difference|}) / (1 + n)
/// where dᵢ = second[i] − first[i] is the difference on bootstrap sample i of n.
/// sacreBLEU counts > instead of ≥. In practice, the results differ only for equal outputs: with ≥,
/// p is 1.
double p_value(std::span<const double> first, std::span<const double> second, double difference);

}  // namespace heed
