#pragma once
/// The metrics of output lines (HEED_TEXT_METRICS): NAME.cpp defines NAME_metric.
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/base/error.h"
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

/// Throws Error(bad_input) if the numbers of lines and of references differ.
inline void require_equal_numbers(std::string_view metric, std::size_t lines,
                                  std::size_t references) {
  if (lines == references) return;
  throw Error(Exit::bad_input,
              "{}: the numbers of lines to score ({}) and of reference lines ({}) differ", metric,
              lines, references);
}

#define HEED_DECLARE(name) TextScore name##_metric(const ScoredLines& lines);
HEED_TEXT_METRICS(HEED_DECLARE)
#undef HEED_DECLARE

}  // namespace heed
