#pragma once
/// The metrics of output lines (HEED_TEXT_METRICS): NAME.cpp defines NAME_metric.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/config/tasks.h"

namespace heed {

struct ScoredLines {
  std::span<const std::string> outputs, references;
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
};

struct TextScore {
  std::vector<std::pair<Metric, double>> values;
  std::string signature;             ///< method of computation, NAME_signature in JSON
  std::vector<std::string> details;  ///< lines to print below the metrics
};

#define HEED_DECLARE(name) TextScore name##_metric(const ScoredLines& lines);
HEED_TEXT_METRICS(HEED_DECLARE)
#undef HEED_DECLARE

}  // namespace heed
