#pragma once
/// The training loop of one run.
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "data/batches/batcher.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/loop/run_progress.h"
#include "train/loop/step.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/jsonl.h"
#include "train/run/run_folder.h"
#include "train/run/weights_info.h"
#include "train/tasks/task.h"
#include "train/terminal/signals.h"
#include "train/terminal/talk.h"

HEED_BEGIN

class Trainer {
 public:
  Trainer(const Config& config, const RunFolder& run, const ExperimentData& data, Talk& talk);

  /// Continues from the newest valid checkpoint of the run, or begins where none was saved yet;
  /// reports what it skipped. Throws Error(bad_input) where all checkpoints are damaged, and
  /// Error(io) where the disk fails.
  void restore();
  /// Trains to the end, or until a signal asks to stop; saves. Returns the signal or 0. Until this
  /// or restore(), nothing in the run's folder is touched.
  int train();
  /// After training: loads and records the run's weights. They are the best checkpoint's; or the mean
  /// of the last ones, if the config asks for it and it is better on the validation data (without
  /// such data, always).
  WeightsInfo choose_weights();
  /// The metrics of the test split, or of the validation split where there is no other; recorded.
  std::optional<Evaluation> final_evaluation();

  const Model& model() const { return *model_; }
  Team& team() { return team_; }
  const Task& task() const { return *task_; }
  Trained trained() { return {*model_, data_.tokenizers, team_}; }
  std::int64_t optimizer_steps() const { return optimizer_.steps(); }  ///< updates made

 private:
  bool finished() const;
  /// Which key has ended a run that is finished: "train.steps=2000".
  std::string reached_limit() const;
  void tell_where_it_stands();  ///< of a run that is resumed
  double share_done() const;    ///< of the run, 0 to 1
  void one_step();
  /// This step was not finite: leaves it out, or ends the run with what it has.
  void give_up_step(const Error& error);
  /// What to do after that, with the run saved as it was after step `from`.
  std::string advice(std::int64_t from, bool skipping) const;
  /// A warning for each reason, the first time.
  void tell_what_stays(const std::vector<std::string>& reasons);
  /// Throws Error(non_finite) where a weight or moment is.
  void check_finite(std::span<const NamedTensor> moments) const;
  void report(const StepResult& result, double lr);
  void validate();
  /// The figures of a validation; none where a signal came before they were complete.
  std::optional<Evaluation> validation_figures();
  /// `on_request`: no checkpoint was due; averages leave it out.
  void save(bool is_best, bool on_request = false);
  void record(const std::string& kind, const nlohmann::json& fields);
  /// Cuts off what was recorded after the checkpoint, and continues recording.
  void repair_metrics();
  /// Where config or data differ from the checkpoint's: starts the epoch again, because the numbers
  /// of its batches mean other samples, and chooses the best weights again.
  void adapt_progress(const Progress& now);
  /// Points `best` at the best checkpoint; at none where that one is lost.
  void find_best();
  void remove_average();  ///< if there is one
  /// Puts the mean of the last checkpoints into the model, judges it, and keeps it in RUN/average if
  /// it is better than the best checkpoint. Adds what it found to `figures`.
  bool mean_is_better(nlohmann::json& figures);
  Metric deciding_metric() const;
  double deciding_value(const Evaluation& e) const;

  const Config& config_;
  RunFolder run_;
  const ExperimentData& data_;
  Talk& talk_;
  std::unique_ptr<Task> task_;
  Team team_;
  std::unique_ptr<Model> model_;
  Optimizer optimizer_;
  TrainStep step_;
  BatchStream stream_;
  TokenCost cost_;            ///< cuts batches into shards
  std::int64_t total_steps_;  ///< where schedules end; 0: the run is limited by time alone
  std::unique_ptr<Prefetcher> batches_;
  CheckpointFolder checkpoints_;
  std::optional<JsonlWriter> metrics_;                    ///< from train() or restore() on
  std::optional<SignalRequests> signals_{std::in_place};  ///< until training is over
  Progress progress_;
  std::int64_t last_saved_ = -1, last_validated_ = -1;
  std::set<std::string> stays_;  // warnings about old checkpoints that cannot be removed
  bool stopped_early_ = false;
};

HEED_END
