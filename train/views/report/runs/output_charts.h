#pragma once
/// Analyses of the outputs of a run: the best and worst outputs, scores by length, calibration, and
/// precision, recall and confusion of labels.
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/config/config.h"
#include "train/views/draw/chart.h"
#include "train/views/report/runs/bootstrap.h"

namespace heed {

/// How the outputs of a run are scored one by one.
enum class SampleScore {
  probability,  ///< probability of the predicted label, 0 to 1
  words,        ///< fraction of right labels, which are words
  characters,   ///< fraction of right labels, which are characters
  chrf          ///< chrF2 of a text, 0 to 100
};
constexpr auto names_of(SampleScore) {
  return enum_names<SampleScore>("probability", "right labels", "right labels", "chrF2");
}
SampleScore score_kind(const Config& config, std::span<const SampleOutput> outputs);
double sample_score(SampleScore kind, const SampleOutput& sample);
std::string score_text(SampleScore kind, const SampleOutput& sample);

/// Indices of samples to show, in titled groups of at most six: the worst, random and best outputs.
/// A random sample may occur more than once.
std::vector<std::pair<std::string, std::vector<std::size_t>>> chosen_samples(
    SampleScore kind, std::span<const SampleOutput> outputs);

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

/// The labels that label_rows and confusion_map show: the labels of an evaluation's record (the
/// object "classes" in metrics.jsonl) or, of more than 40, the most frequent; empty if the record
/// has none.
std::vector<std::string> shown_labels(const nlohmann::json& record);

/// A row of headings, and one for each of the labels: precision, recall, F1 and the number of
/// occurrences.
std::vector<std::vector<std::string>> label_rows(const nlohmann::json& record,
                                                 std::span<const std::string> labels);

/// The confusion matrix of the labels: for each true label (a row), the numbers of the predicted
/// labels, shaded by their fraction of the row.
Drawing confusion_map(const nlohmann::json& record, std::span<const std::string> labels);

}  // namespace heed
