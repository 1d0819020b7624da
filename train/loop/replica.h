#pragma once
/// What each process of a run has: the model, its optimizer and the batches. A run on one machine has one
/// replica. In a distributed run every rank has one, they take their steps together, and rank 0, where
/// the Trainer is, tells the others what to do next.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/base/team.h"
#include "data/batches/batcher.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/distributed/parameter_exchange.h"
#include "train/loop/step.h"
#include "train/loop/teacher.h"
#include "train/tasks/task.h"

HEED_BEGIN

class Replica {
 public:
  /// `world`: the ranks of a distributed run, all of which make a replica of the same config and data.
  Replica(const Config& config, const ExperimentData& data, World* world = nullptr);

  // ---- on rank 0, or alone; the other ranks do the same
  /// Begins with the batch at this position, on every rank with rank 0's weights, memory and number of
  /// updates.
  void begin(Position position);
  /// The next batch; as TrainStep::run.
  StepResult step(std::int64_t number, double lr);
  /// Gives the other ranks rank 0's weights and buffers.
  void share_weights();
  /// Of the test or the validation split. The ranks must have the same weights. `interruptible`: throws
  /// Team::Interrupted if a rank other than this one has received a stop signal, or as the team does.
  Evaluation evaluate(bool test, const EvaluationRequest& request, bool interruptible = false);
  /// A stop signal that another rank has received, or 0.
  int remote_stop_signal() const { return world_ != nullptr ? world_->stop() : 0; }
  /// The optimizer's moments, whole: those in use, or in a distributed run a copy.
  std::vector<NamedTensor> moments();
  /// Makes these, which came from moments(), the moments in use.
  void set_moments(std::vector<NamedTensor>& moments);
  /// Lets follow() return this status on the other ranks.
  void end(int status);

  // ---- on the other ranks
  /// Executes the orders of rank 0 until the run ends. Returns its exit status.
  int follow();

  LoadedModel loaded_model() { return {*model_, data_.tokenizers, team_}; }
  const Task& task() const { return *task_; }
  Team& team() { return team_; }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  TrainStep& steps() { return step_; }
  BatchStream& stream() { return stream_; }
  Prefetcher& batches() { return *batches_; }  ///< after begin()
  bool has_begun() const { return batches_ != nullptr; }
  /// What a step sent from here and how much of its time the exchanges took, for people;
  /// empty for a run of one process.
  std::string traffic() const;

 private:
  struct Order;
  void broadcast_order(const Order& order);
  StepResult run_step(std::int64_t number, double lr);
  void receive_weights();
  void share_memory();
  Evaluation evaluate_together(bool test, const EvaluationRequest& request);

  const Config& config_;
  const ExperimentData& data_;
  World* world_;
  std::unique_ptr<Task> task_;
  Team team_;
  std::unique_ptr<Model> model_;
  Parameters trained_;  // not frozen
  std::optional<ParameterExchange> exchange_;
  Optimizer optimizer_;
  std::unique_ptr<Teacher> teacher_;
  TrainStep step_;
  BatchStream stream_;
  TokenCost cost_;  // cuts batches into shards
  std::unique_ptr<Prefetcher> batches_;
  Traffic steps_traffic_;  // of all steps so far
  std::int64_t steps_taken_ = 0;
  double step_seconds_ = 0;
};

HEED_END
