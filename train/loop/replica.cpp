#include "train/loop/replica.h"

#include <fmt/format.h>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"
#include "train/distributed/launch.h"
#include "train/loop/teacher.h"
#include "train/loop/transfer.h"
#include "train/tasks/model.h"
#include "train/tasks/token_cost.h"
#include "train/terminal/signals.h"

HEED_BEGIN

/// A message from rank 0 to all other ranks.
struct Replica::Order {
  enum Kind : std::int64_t { begin, step, weights, evaluate, collect, spread, end } kind;
  std::int64_t number = 0;  // begin: number of updates; step: number of the step; end: exit status
  double lr = 0;
  Position position = {};
  bool test = false;
  bool interruptible = false;
  EvaluationRequest request = {};
};

Replica::Replica(const Config& config, const ExperimentData& data, World* world)
    : config_(config),
      data_(data),
      world_(world),
      task_(make_task(config)),
      team_(threads_of(config.threads, world)),
      model_(build_to_train(config, sizes_of(data.tokenizers))),
      trained_(not_frozen(*model_, config.train.freeze)),
      exchange_(world != nullptr ? std::make_unique<ParameterExchange>(*world, trained_) : nullptr),
      optimizer_(config.optim, trained_, exchange_ ? exchange_->owned_values() : all_values),
      step_(*model_, optimizer_, team_, training_options(config, data), exchange_.get()),
      stream_(data.train, batch_options(config)),
      cost_(token_cost(*task_, *model_)) {}

void Replica::broadcast_order(const Order& order) {
  if (world_ == nullptr) return;
  Order copy = order;
  world_->broadcast(copy);
}

void Replica::begin(Position position) {
  broadcast_order({.kind = Order::begin, .number = optimizer_.steps(), .position = position});
  receive_weights();
  share_memory();
  stream_.seek(position);
  batches_ = std::make_unique<Prefetcher>(stream_);
}

StepResult Replica::step(std::int64_t number, double lr) {
  const double begin = seconds_now();
  const Traffic before = world_ != nullptr ? world_->traffic() : Traffic();
  broadcast_order({.kind = Order::step, .number = number, .lr = lr});
  const StepResult result = run_step(number, lr);
  if (world_ != nullptr) {
    steps_traffic_ += world_->traffic() - before;
    step_seconds_ += seconds_now() - begin;
    ++steps_taken_;
  }
  return result;
}

std::string Replica::traffic() const {
  if (steps_taken_ == 0) return "";
  const auto n = static_cast<double>(steps_taken_);
  return fmt::format(
      "on average, rank 0 sends {:.3f} MB in {:.0f} messages per step, and exchanges (including "
      "waiting for other ranks) take {:.1f} % of a step's {:.0f} ms",
      static_cast<double>(steps_traffic_.bytes) / n / 1e6,
      static_cast<double>(steps_traffic_.messages) / n,
      100 * steps_traffic_.seconds / step_seconds_, 1000 * step_seconds_ / n);
}

StepResult Replica::run_step(std::int64_t number, double lr) {
  const Batch batch = batches_->next();
  return step_.run(shard(batch, config_.train.shards, cost_), number, lr);
}

void Replica::share_weights() {
  broadcast_order({.kind = Order::weights});
  receive_weights();
}

void Replica::receive_weights() {
  if (world_ == nullptr) return;
  for (NamedTensor& t : model_->state())
    world_->broadcast(std::as_writable_bytes(t.tensor.mutable_value().values()));
}

void Replica::share_memory() {
  std::optional<SegmentMemory>& memory = step_.memory();
  if (world_ == nullptr || !memory) return;
  std::int64_t lanes = memory->length() > 0 ? memory->arrays().front().shape()[0] : 0,
               length = memory->length();
  world_->broadcast(lanes);
  world_->broadcast(length);
  std::vector<Array> layers = memory->arrays();
  for (Array& layer : layers) {
    if (!world_->first()) layer = Array({lanes, length, memory->width()});
    world_->broadcast(std::as_writable_bytes(layer.values()));
  }
  if (length > 0 && !world_->first()) memory->restore(std::move(layers));
}

Evaluation Replica::evaluate(bool test, const EvaluationRequest& request, bool interruptible) {
  broadcast_order(
      {.kind = Order::evaluate, .test = test, .interruptible = interruptible, .request = request});
  return evaluate_together(test, request);
}

Evaluation Replica::evaluate_together(bool test, const EvaluationRequest& request) {
  LoadedModel model = loaded_model();
  model.world = world_;
  return task_->evaluate(model, test ? data_.test : data_.valid, request);
}

std::vector<NamedTensor> Replica::moments() {
  if (!exchange_) return optimizer_.state();
  broadcast_order({.kind = Order::collect});
  return exchange_->gather_moments(optimizer_);
}

void Replica::set_moments(std::vector<NamedTensor>& moments) {
  if (!exchange_) {
    optimizer_.set_state(moments);
    return;
  }
  broadcast_order({.kind = Order::spread});
  exchange_->scatter_moments(moments, optimizer_);
}

void Replica::end(int status) {
  broadcast_order({.kind = Order::end, .number = status});
  if (world_ != nullptr) world_->confirm_end();
}

int Replica::follow() {
  // The launcher sends signals to every rank; rank 0 handles them.
  const SignalRequests signals;
  const auto note_stop_signal = [&] {
    world_->note_stop(signals.stop());
    return signals.stop() != 0;
  };
  std::vector<NamedTensor> none;
  while (true) {
    Order order{};
    {
      const World::ExtendedTimeout wait(*world_);  // rank 0 may be saving a checkpoint
      world_->broadcast(order);
    }
    switch (order.kind) {
      case Order::begin:
        optimizer_.set_steps(order.number);
        receive_weights();
        share_memory();
        stream_.seek(order.position);
        batches_ = std::make_unique<Prefetcher>(stream_);
        break;
      case Order::step:
        note_stop_signal();
        try {
          run_step(order.number, order.lr);
        } catch (const Error& error) {
          if (error.code != Exit::non_finite) throw;  // occurs on all ranks; rank 0 handles it
        }
        break;
      case Order::weights:
        receive_weights();
        break;
      case Order::evaluate:
        if (order.interruptible) team_.interrupt_when(note_stop_signal);
        try {
          evaluate_together(order.test, order.request);
        } catch (const Team::Interrupted&) {  // occurs on all ranks; rank 0 handles it
        }
        team_.interrupt_when({});
        break;
      case Order::collect:
        exchange_->gather_moments(optimizer_);
        break;
      case Order::spread:
        exchange_->scatter_moments(none, optimizer_);
        break;
      case Order::end:
        world_->confirm_end();
        return static_cast<int>(order.number);
    }
  }
}

HEED_END
