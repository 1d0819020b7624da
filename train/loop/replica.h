#pragma once
/// The state of one process of a run: the model, its optimizer and the batches. A run of one
/// process has one replica. In a distributed run, every rank has one; all ranks run their steps
/// together, and rank 0, which runs the Trainer, sends orders to the other ranks.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/base/team.h"
#include "data/batches/batcher.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/distributed/parameter_exchange.h"
#include "train/loop/step.h"
#include "train/tasks/task.h"

HEED_BEGIN

class Replica {
 public:
  /// `world`: the ranks of a distributed run, each of which constructs a replica with the same
  /// config and data; null in a run of one process.
  Replica(const Config& config, const ExperimentData& data, World* world = nullptr);

  // ---- called on rank 0 or in a run of one process, while the other ranks are in follow()
  /// Starts training with the batch at `position`. Every rank receives rank 0's weights, segment
  /// memory and number of updates.
  void begin(Position position);
  /// Runs TrainStep::run on the next batch.
  StepResult step(std::int64_t number, double lr);
  /// Sends rank 0's weights and buffers to the other ranks.
  void share_weights();
  /// Evaluates the test or the validation split. The ranks must have the same weights. Throws
  /// Team::Interrupted on all ranks if the team of one rank is interrupted; if `interruptible`, a
  /// stop signal on another rank interrupts the team of that rank.
  Evaluation evaluate(bool test, const EvaluationRequest& request, bool interruptible = false);
  /// The stop signal that another rank has received, or 0.
  int remote_stop_signal() const { return world_ != nullptr ? world_->stop() : 0; }
  /// All moments of the optimizer: the tensors in use, or copies in a distributed run or if they are
  /// not float32.
  std::vector<NamedTensor> moments();
  /// Sets the moments of all ranks to the values of these tensors, which moments() has returned.
  void set_moments(std::vector<NamedTensor>& moments);
  /// Makes follow() return this status on the other ranks.
  void end(int status);

  // ---- called on the other ranks
  /// Executes the orders of rank 0 until the run ends. Returns the exit status of the run.
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
  Prefetcher& batches() { return *batches_; }  ///< requires begin()
  /// A message with the traffic per step and the share of time spent in exchanges; empty before the
  /// first step and in a run of one process.
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
  Parameters trained_;                           // parameters that are not frozen
  std::unique_ptr<ParameterExchange> exchange_;  // null in a run of one process
  Optimizer optimizer_;
  TrainStep step_;
  BatchStream stream_;
  TokenCost cost_;  // costs of tokens, for dividing batches into shards
  std::unique_ptr<Prefetcher> batches_;
  Traffic steps_traffic_;  // sum over all steps so far
  std::int64_t steps_taken_ = 0;
  double step_seconds_ = 0;
};

HEED_END
