#pragma once
/// The records of a run, read for a report: its curves, final figures and outputs.
#include <string>
#include <utility>
#include <vector>

#include "train/draw/chart.h"
#include "train/report/runs/comparison.h"
#include "train/run/outputs.h"

namespace heed {

/// A figure as a function of the step. Names are those of metrics.jsonl with the kind of its records before
/// them: "train.loss", "valid.bleu", "train.gradient_norms.encoder.layers.0". A figure that is null
/// in metrics.jsonl, since it was not finite, is NaN here.
struct Curve {
  std::string name;
  std::vector<Point> points;
};

struct History {
  RunResult result;
  nlohmann::json run;         ///< run.json; null if it is missing
  std::vector<Curve> curves;  ///< in alphabetical order
  std::vector<SampleOutput> outputs;
  nlohmann::json weights;              ///< the record of which weights were tested; or null
  std::vector<std::string> incidents;  ///< lines of the log: skipped steps, resumes, warnings
  std::int64_t step = 0, target_tokens = 0;
  double seconds = 0;

  const Curve* find(const std::string& name) const;
};

/// Reads a run folder, whose run may still be in progress. Throws Error(usage) if it is none, and
/// Error(bad_input) if a file is damaged.
History read_history(const std::string& folder);

}  // namespace heed
