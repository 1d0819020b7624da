#pragma once
/// The history of a run for a report: its curves, final metrics and outputs.
#include <string>
#include <vector>

#include "train/results/comparison.h"
#include "train/results/point.h"
#include "train/run/outputs.h"

namespace heed {

/// A metric as a function of the step. Its name consists of the kind of the record (train or valid)
/// and the field in metrics.jsonl: "train.loss", "valid.bleu",
/// "train.gradient_norms.encoder.layers.0". Non-finite metrics, which are null in metrics.jsonl,
/// become NaN.
struct Curve {
  std::string name;
  std::vector<Point> points;
};

struct History {
  RunResult result;
  nlohmann::json run;         ///< run.json; null if it is missing
  std::vector<Curve> curves;  ///< curves in alphabetical order
  std::vector<SampleOutput> outputs;
  std::vector<std::string> incidents;  ///< lines of train.log: skipped steps, resumes, warnings, …
  std::int64_t step = 0, target_tokens = 0;
  double seconds = 0;

  const Curve* find(const std::string& name) const;
};

/// Reads the folder of a run, which may still be in progress. Throws Error(usage) if the folder is
/// not a run, and Error(bad_input) if a file is damaged.
History read_history(const std::string& folder);

}  // namespace heed
