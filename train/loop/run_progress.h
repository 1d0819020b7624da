#pragma once
/// The progress of a training run, and the decisions that depend only on it and the config.
#include "nn/models/model.h"
#include "train/tasks/data.h"

HEED_BEGIN

/// The state that a checkpoint contains besides tensors.
struct Progress {
  std::int64_t step = 0;           ///< number of completed steps, including skipped steps
  Position position;               ///< position of the next batch
  std::int64_t target_tokens = 0;  ///< number of target tokens trained on
  double seconds = 0;              ///< training time over all sessions, in seconds
  std::optional<double> best;      ///< best value of the deciding metric so far
  std::int64_t best_step = 0;
  std::int64_t validations_without_improvement = 0;  ///< number of validations since the best
  std::string best_criterion;                        ///< metric and data of `best`
  std::string batches;                 ///< data, seed and batch size that `position` refers to
  bool validation_due = false;         ///< true: the weights of this step must still be validated
  std::int64_t skipped = 0;            ///< number of non-finite steps that were skipped
  std::int64_t consecutive_skips = 0;  ///< number of consecutive skips up to this step
  LossCounts window;                   ///< sums since the last record of kind "train"
  double window_seconds = 0;           ///< training time since that record

  /// The progress of a new run.
  static Progress start(const Config& config, const ExperimentData& data);
  /// Adds a validation with this value of the deciding metric. Returns whether it is the best.
  bool add_validation(Metric metric, double value);

  nlohmann::json json() const;
  static Progress from(const nlohmann::json& state);
};

/// The metric that selects the best checkpoint.
Metric deciding_metric(const TrainOptions& train);

// ---- the end of a run
/// Whether the number of validations without an improvement has reached the patience.
bool out_of_patience(const TrainOptions& train, const Progress& progress);
/// The limit that ends the run: "train.steps=2000"; nullopt: the run is not finished.
std::optional<std::string> reached_limit(const TrainOptions& train, const Progress& progress,
                                         double epochs_done);
/// The completed share of the run, measured by the nearest of its limits other than the patience.
double share_done(const TrainOptions& train, const Progress& progress, double epochs_done);

// ---- resuming
struct AdaptedProgress {
  Progress progress;
  std::vector<std::string> notes;  ///< messages for the user
};
/// Adapts the progress of a checkpoint to the resumed run, whose config and data are those of
/// `start`. Restarts the epoch if data, seed or batch size have changed, because the batch number
/// then refers to other samples. Resets the best checkpoint if the deciding metric or the
/// validation data have changed; `validates`: the run has validation data.
AdaptedProgress adapted(Progress saved, const Progress& start, bool validates);

HEED_END
