#pragma once
/// How far a metric would vary over other test sets of the same kind, estimated by resampling the
/// one there is (Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation"; as
/// in sacreBLEU, Post 2018).
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "train/config/tasks.h"
#include "train/run/outputs.h"

namespace heed {

/// What a metric of a corpus is computed from: the sums of a few numbers over its samples.
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

/// The metric on 1,000 sets of as many samples, drawn with replacement. Two models with the same
/// number of samples are judged on the same sets.
std::vector<double> resampled(const SampleStatistics& statistics);

struct Interval {
  double low = 0, high = 0;
};
/// Where 95 % of the resampled values lie.
Interval interval_of(std::vector<double> values);

/// The probability of a difference as large as `difference` if the two models were equally good:
///   p = (1 + #{|dᵢ − mean d| ≥ |difference|}) / (1 + n), dᵢ the difference on resampled set i
/// sacreBLEU counts > in place of ≥, which differs for equal outputs alone: p is 1 here.
double p_value(std::span<const double> first, std::span<const double> second, double difference);

}  // namespace heed
