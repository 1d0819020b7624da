#pragma once
/// The training loop of one run.
#include <set>

#include "train/loop/replica.h"
#include "train/loop/run_progress.h"
#include "train/loop/weight_ema.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_lock.h"
#include "train/run/run_metrics.h"
#include "train/terminal/run_log.h"
#include "train/terminal/signals.h"

HEED_BEGIN

class Trainer {
 public:
  /// `world`: the ranks of a distributed run, in which the other ranks call Replica::follow; null
  /// in a run of one process. Throws Error(usage) if train.distill.teacher or model.init_from names
  /// the folder of the run itself.
  Trainer(const Config& config, const RunFolder& run, const ExperimentData& data, RunLog& run_log,
          World* world = nullptr);

  /// From now on, throws the Error(io) of RunLock::confirm, before anything is written, if the run's
  /// folder is no longer the one that is locked.
  void set_lock(const RunLock& lock) { lock_ = &lock; }
  /// Called before a new run: loads the weights of model.init_from, if set.
  void initialise();
  /// Continues from the newest valid checkpoint of the run, or starts at step 0 if the run has
  /// saved none. Logs the damaged checkpoints. Throws Error(bad_input) if all checkpoints are
  /// damaged or lost, if the newest valid one does not fit the config or the data, or if `last` or
  /// `best` is a folder; Error(usage) if the run is a pruned or quantised copy; and Error(io) if a
  /// file cannot be read or written.
  void restore();
  /// Trains to the end or until a signal requests a stop, and saves a checkpoint. Returns the
  /// signal or 0. The run's folder is unchanged until train() or restore() is called.
  int train();
  /// Called after training: loads and records the run's weights. With train.average > 1 and at
  /// least two checkpoints in the last fifth of the run, they are the mean of the newest of these,
  /// if it is better on the validation data than the best checkpoint or if there are no validation
  /// data. Otherwise, they are those of the best checkpoint or, without one, of the last.
  WeightsInfo choose_weights();
  /// Computes and records the metrics of the test split or, without test data, of the validation
  /// split. Returns nullopt if both are missing.
  std::optional<Evaluation> final_evaluation();

  /// Ends the run on the other ranks with this exit status. Must be the last call.
  void end(int status) { replica_.end(status); }

  const Model& model() const { return replica_.model(); }
  Team& team() { return replica_.team(); }
  const Task& task() const { return replica_.task(); }
  LoadedModel loaded_model() { return replica_.loaded_model(); }
  /// The number of updates of the weights.
  std::int64_t optimizer_steps() const { return replica_.optimizer().steps(); }

 private:
  /// reached_limit() of the run.
  std::optional<std::string> limit();
  bool finished() { return limit().has_value(); }
  /// The signal that requested a stop on this or another rank, or 0.
  int stop() const;
  void one_step();
  /// Called for a non-finite step: skips it, or saves and ends the run.
  void handle_nonfinite_step(const Error& error);
  /// Logs the reasons why checkpoints were not removed, each once.
  void warn_undeleted(const std::vector<std::string>& reasons);
  void report(const StepResult& result, double lr);
  void validate();
  /// The results of a validation; nullopt if a stop signal interrupted it.
  std::optional<Evaluation> validation_metrics();
  /// Called before an evaluation or a step: sends rank 0's weights to the other ranks, unless all
  /// ranks have the same weights.
  void share_weights();
  /// Saves a checkpoint of the current step, if there is none. `on_request`: outside the schedule
  /// of train.save_every; load_average skips such checkpoints, except the newest. Throws
  /// Error(non_finite) if a weight or moment is not finite.
  void save(bool on_request = false);
  void record(const std::string& kind, const nlohmann::json& fields);
  void confirm_folder() const;
  void continue_metrics();  ///< repairs metrics.jsonl and opens it
  /// Points the link `best` at the best checkpoint, or removes the link if there is no best
  /// checkpoint or it is lost.
  void find_best();

  const Config& config_;
  RunFolder run_;
  const ExperimentData& data_;
  RunLog& run_log_;
  const RunLock* lock_ = nullptr;
  Replica replica_;
  std::optional<WeightEma> ema_;
  /// The last step of the run according to train.steps or train.epochs, for learning_rate(); 0:
  /// neither is set.
  std::int64_t total_steps_;
  CheckpointFolder checkpoints_;
  std::optional<RunMetrics> metrics_;                     ///< set by train() or restore()
  std::optional<SignalRequests> signals_{std::in_place};  ///< reset at the end of training
  Progress progress_;
  std::int64_t last_saved_ = -1, last_validated_ = -1;
  std::set<std::string> undeleted_warnings_;  // logged warnings about undeleted checkpoints
};

HEED_END
