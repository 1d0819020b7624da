#pragma once
/// Compares the configs and results of runs.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/config/tasks.h"
#include "train/run/run_folder.h"

namespace heed {

/// A run and its final metrics.
struct RunResult {
  std::string folder;
  Config config;
  /// The newest record of metrics.jsonl with final metrics, or of a later validation; without
  /// either, what `heed eval` has last measured on a split; else null.
  nlohmann::json record;
  /// The data on which the metrics were measured: "test", "valid", or "valid, step 500"; empty if
  /// the run has no metrics yet.
  std::string where;
  /// How `heed prune` and `heed quantize` have derived the weights: "pruned, 12 heads, then
  /// quantised"; empty: trained.
  std::string derived = {};
};

/// The value of a metric; nullopt if the run has none.
std::optional<double> figure(const RunResult& result, Metric metric);

/// The records of a run's metrics.jsonl. Throws Error(bad_input), naming file and line, if a record
/// is damaged or a field that heed reads (kind, step, seconds, …) has the wrong type.
std::vector<nlohmann::json> read_metrics(const RunFolder& run);

/// Sets `derived`, and `record` and `where` if the records of metrics.jsonl contain final metrics or
/// a validation. Throws Error(bad_input) for a record without kind, or for metrics without step.
void set_results(RunResult& result, std::vector<nlohmann::json> records);
/// Reads a run folder. Throws Error(usage) if the folder is not a run, Error(bad_input) if the run
/// has no metrics yet or its metrics.jsonl is damaged.
RunResult read_result(const std::string& folder);
/// The result of a run from the records of its metrics.jsonl; `record` is null without metrics.
RunResult result_of(const std::string& folder, std::vector<nlohmann::json> records);

/// The folders of runs that the arguments of a command name. The folder of a sweep stands for those
/// of its runs that have results. Throws Error(usage) if none of them has, Error(bad_input) for a
/// damaged sweep.json.
std::vector<std::string> run_folders(const std::vector<std::string>& named);

/// Whether a config key can change the results: all keys except name, threads and
/// train.tensorboard.
bool changes_results(std::string_view key);

/// The value of one of Comparison::keys() in a run, as YAML.
std::string setting(const RunResult& result, std::string_view key);

/// Runs that differ only in the seed and in keys that cannot change the results.
struct RunGroup {
  std::vector<std::string> values;     ///< values of Comparison::keys, as YAML
  std::vector<const RunResult*> runs;  ///< runs in the order of `results`
};

/// The values of one metric in the runs of a group.
struct Spread {
  std::int64_t count = 0;
  double mean = 0;
  double deviation = 0;      ///< sample standard deviation; 0 for one value
  double low = 0, high = 0;  ///< minimum and maximum
};

class Comparison {
 public:
  /// The groups are in the order of their first runs. `results` must contain at least one run
  /// and outlive the comparison. Throws Error(usage) if the tasks differ or a folder occurs twice.
  explicit Comparison(const std::vector<RunResult>& results);

  /// The keys whose values differ, except the seed and keys that cannot change the results. The last
  /// one is "weights" if the weights of some runs are derived from those of others.
  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<RunGroup>& groups() const { return groups_; }
  /// The metrics of the tables: those for which at least one run has a value, without metrics that
  /// the config does not suggest. BLEU, chrF2 and ROUGE judge texts, so they are omitted if
  /// train.best is another metric than these or the loss (as for lines of symbols, which are judged
  /// by exact match), and ROUGE, which judges summaries, unless train.best is a ROUGE score. json()
  /// contains all metrics.
  const std::vector<Metric>& metrics() const { return metrics_; }
  /// The metric of the verdicts: the first run's train.best.
  Metric main() const { return main_; }
  Spread spread(const RunGroup& group, Metric metric) const;
  /// All keys() without their sections, as long as these are unique, and their values: "layers 6,
  /// norm pre" (or layers.encoder and layers.decoder, if these differ in a group); without keys, the
  /// folder of the group's first run.
  std::string label(const RunGroup& group) const;
  /// A row of headings, then one row per group.
  std::vector<std::vector<std::string>> rows() const;
  /// One sentence for each group after the first: the difference of its main metric from the first
  /// group's, and whether the two ranges overlap; or why the groups cannot be compared. Even
  /// without a real difference, the ranges are disjoint in 1 of 3 cases with two seeds each, and in
  /// 1 of 10 cases with three.
  std::vector<std::string> verdicts() const;

  std::string text() const;      ///< table for the terminal, then the verdicts
  std::string markdown() const;  ///< table and verdicts in Markdown
  std::string latex() const;     ///< a table for the package booktabs; the verdicts are comments
  nlohmann::json json() const;

 private:
  /// A clause that compares a group with the first.
  std::string verdict(const RunGroup& group) const;
  std::string cell(const RunGroup& group, Metric metric) const;
  /// The settings in which a group differs from the first: "model.norm=post".
  std::string name_of_group(const RunGroup& group) const;

  std::vector<std::string> keys_;
  std::vector<RunGroup> groups_;
  std::vector<Metric> metrics_;
  Metric main_ = Metric::loss;
};

}  // namespace heed
