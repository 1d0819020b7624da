#pragma once
/// Runs side by side: the differences of their configs, and their results.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/config/tasks.h"
#include "train/run/run_folder.h"

namespace heed {

/// A run and the figures it ended with.
struct RunResult {
  std::string folder;
  Config config;
  nlohmann::json
      record;  ///< of metrics.jsonl: the newest final figures, or a validation after them
  std::string
      where;  ///< "test", "valid", or "valid, step 500"; empty if the run has no figures yet
};

/// The figure of a metric; unset if the run has none.
std::optional<double> figure(const RunResult& result, Metric metric);

/// The records of a run's metrics.jsonl. Throws Error(bad_input), naming file and line, if one is
/// damaged or a field of it that heed reads (kind, step, seconds, …) is not of its type.
std::vector<nlohmann::json> read_metrics(const RunFolder& run);

/// Sets `record` and `where` from the records of metrics.jsonl, if they have figures yet. Throws
/// Error(bad_input) for a record without kind or step.
void set_results(RunResult& result, std::vector<nlohmann::json> records);
/// Reads a run folder. Throws Error(usage) if it is none, Error(bad_input) if it has no figures yet.
RunResult read_result(const std::string& folder);
/// The same from the records of its metrics.jsonl; without figures, its record is null.
RunResult result_of(const std::string& folder, std::vector<nlohmann::json> records);

/// Whether a key of the config can change the results: all can except name, threads and
/// train.tensorboard.
bool changes_results(std::string_view key);

/// Runs that differ in nothing but the seed.
struct RunGroup {
  std::vector<std::string> values;     ///< of Comparison::keys, as in YAML
  std::vector<const RunResult*> runs;  ///< in the order given
};

struct Spread {
  std::int64_t count = 0;
  double mean = 0, deviation = 0;  ///< standard deviation of a sample; 0 for one value
  double low = 0, high = 0;
};

class Comparison {
 public:
  /// The groups are in the order of their first runs. `results` has at least one run and must
  /// outlive the comparison. Throws Error(usage) if their tasks differ or a folder occurs twice.
  explicit Comparison(const std::vector<RunResult>& results);

  /// The keys whose values differ, except the seed and those that cannot change the results.
  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<RunGroup>& groups() const { return groups_; }
  /// The figures that any of the runs has.
  const std::vector<Metric>& metrics() const { return metrics_; }
  /// The metric of the verdicts: the first run's train.best.
  Metric main() const { return main_; }
  Spread spread(const RunGroup& group, Metric metric) const;
  /// The values of all keys(): "pre, 6"; for a single group its first folder.
  std::string label(const RunGroup& group) const;
  /// A row of headings, then a row for each group.
  std::vector<std::vector<std::string>> rows() const;
  /// For each group after the first, how its main metric differs from the first one's, and whether
  /// the ranges of the two overlap. Even without a real difference they do not in 1 of 3 cases with two
  /// seeds each, and in 1 of 10 with three.
  std::vector<std::string> verdicts() const;

  std::string text() const;      ///< a table for the terminal, then the verdicts
  std::string markdown() const;  ///< the same table and verdicts in Markdown
  nlohmann::json json() const;

 private:
  std::string difference(const Spread& first, const Spread& own) const;
  std::string judgement(const RunGroup& group) const;
  std::string cell(const RunGroup& group, Metric metric) const;
  /// The keys in which it differs from the first group: "model.norm=post".
  std::string name_of_group(const RunGroup& group) const;

  std::vector<std::string> keys_;
  std::vector<RunGroup> groups_;
  std::vector<Metric> metrics_;
  Metric main_ = Metric::loss;
};

}  // namespace heed
