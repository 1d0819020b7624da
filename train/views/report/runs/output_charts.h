#pragma once
/// Analyses of the outputs of a run: the best and worst outputs, scores by length, calibration and
/// confusion of labels.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/views/draw/chart.h"
#include "train/views/report/runs/bootstrap.h"

namespace heed {

/// The score of a sample: the probability of the predicted label (0 to 1) or the chrF2 of a text (0
/// to 100).
double sample_score(const SampleOutput& sample);

/// Indices of samples to show, in titled groups of at most six: the worst, random and best outputs.
/// A random sample may occur more than once.
std::vector<std::pair<std::string, std::vector<std::size_t>>> chosen_samples(
    std::span<const SampleOutput> outputs);

/// Indices of up to `max_count` samples whose predicted label is wrong, the most probable
/// predictions first.
std::vector<std::size_t> most_confident_mistakes(std::span<const SampleOutput> outputs,
                                                 std::size_t max_count);

struct LengthSeries {
  std::string name;
  const SampleStatistics* statistics = nullptr;
};
/// The metric of each run for groups of samples whose targets have similar numbers of words.
Chart score_by_length(Metric metric, std::span<const SampleOutput> outputs,
                      std::span<const LengthSeries> runs);

/// Accuracy over confidence (the probability of the predicted label) in ten bins, and the expected
/// calibration error: the mean absolute difference between accuracy and confidence, weighted by the
/// number of samples in each bin (Guo et al. 2017, "On Calibration of Modern Neural Networks").
Chart calibration(std::span<const SampleOutput> outputs);

/// The confusion matrix: for each true label (a row), the fractions of the predicted labels.
/// Contains at most 40 labels: those that are the most frequent true labels.
Drawing confusion_map(std::span<const SampleOutput> outputs);

}  // namespace heed
