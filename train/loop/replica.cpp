#include "train/loop/replica.h"

#include "autograd/base/error.h"
#include "train/distributed/launch.h"
#include "train/loop/transfer.h"
#include "train/tasks/model.h"
#include "train/tasks/token_cost.h"
#include "train/terminal/signals.h"

HEED_BEGIN

namespace {

std::optional<ParameterExchange> exchange_in(World* world, const Parameters& trained) {
  if (world == nullptr) return std::nullopt;
  return std::optional<ParameterExchange>(std::in_place, *world, trained);
}

std::int64_t threads_of(const Config& config, World* world) {
  if (config.threads > 0 || world == nullptr) return config.threads;
  return processors_of_rank(*world);
}

}  // namespace

/// From rank 0 to the others.
struct Replica::Order {
  enum Kind : std::int64_t { begin, step, weights, evaluate, collect, spread, end } kind;
  std::int64_t number = 0;  // begin: updates made; step: its number; end: the exit status
  double lr = 0;
  Position position = {};
  bool test = false;
  EvaluationRequest request = {};
};

Replica::Replica(const Config& config, const ExperimentData& data, World* world)
    : config_(config),
      data_(data),
      world_(world),
      task_(make_task(config)),
      team_(threads_of(config, world)),
      model_(build_to_train(config, sizes_of(data.tokenizers))),
      trained_(not_frozen(*model_, config.train.freeze)),
      exchange_(exchange_in(world, trained_)),
      optimizer_(config.optim, trained_, exchange_ ? exchange_->owned_values() : all_values),
      teacher_(make_teacher(config, data)),
      step_(*model_, optimizer_, team_, with_teacher(step_options(config), teacher_.get()),
            exchange_ ? &*exchange_ : nullptr),
      stream_(data.train, batch_options(config)),
      cost_(token_cost(*task_, *model_)) {
  if (world_ != nullptr) ranks_ = describe(*world_, team_.threads());
}

void Replica::tell(const Order& order) {
  if (world_ == nullptr) return;
  Order copy = order;
  world_->broadcast(copy);
}

void Replica::begin(Position position) {
  tell({.kind = Order::begin, .number = optimizer_.steps(), .position = position});
  receive_weights();
  share_memory();
  stream_.seek(position);
  batches_ = std::make_unique<Prefetcher>(stream_);
}

StepResult Replica::step(std::int64_t number, double lr, int stop) {
  tell({.kind = Order::step, .number = number, .lr = lr});
  return take_step(number, lr, stop);
}

StepResult Replica::take_step(std::int64_t number, double lr, int stop) {
  const Batch batch = batches_->next();
  return step_.run(shard(batch, config_.train.shards, cost_), number, lr, stop);
}

void Replica::share_weights() {
  tell({.kind = Order::weights});
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

Evaluation Replica::evaluate(bool test, const EvaluationRequest& request) {
  tell({.kind = Order::evaluate, .test = test, .request = request});
  return evaluate_together(test, request);
}

Evaluation Replica::evaluate_together(bool test, const EvaluationRequest& request) {
  Trained own = trained();
  own.world = world_;
  return task_->evaluate(own, test ? data_.test : data_.valid, request);
}

std::vector<NamedTensor> Replica::moments() {
  if (!exchange_) return optimizer_.state();
  tell({.kind = Order::collect});
  return exchange_->gather_moments(optimizer_);
}

void Replica::set_moments(std::vector<NamedTensor>& whole) {
  if (!exchange_) return;
  tell({.kind = Order::spread});
  exchange_->scatter_moments(whole, optimizer_);
}

void Replica::end(int status) {
  tell({.kind = Order::end, .number = status});
  if (world_ != nullptr) world_->agree_to_end();
}

int Replica::follow() {
  const SignalRequests
      signals;  // the launcher sends signals to every rank, and rank 0 acts on them
  std::vector<NamedTensor> none;
  while (true) {
    Order order{};
    world_->broadcast(order);
    try {
      switch (order.kind) {
        case Order::begin:
          optimizer_.set_steps(order.number);
          receive_weights();
          share_memory();
          stream_.seek(order.position);
          batches_ = std::make_unique<Prefetcher>(stream_);
          break;
        case Order::step:
          take_step(order.number, order.lr, signals.stop());
          break;
        case Order::weights:
          receive_weights();
          break;
        case Order::evaluate:
          team_.interrupt_when([&signals] { return signals.stop() != 0; });
          evaluate_together(order.test, order.request);
          break;
        case Order::collect:
          exchange_->gather_moments(optimizer_);
          break;
        case Order::spread:
          exchange_->scatter_moments(none, optimizer_);
          break;
        case Order::end:
          world_->agree_to_end();
          return static_cast<int>(order.number);
      }
    } catch (const Error& error) {
      if (error.code != Exit::non_finite) throw;  // else every rank has it, and rank 0 decides
    } catch (const Team::Interrupted&) {          // likewise
    }
    team_.interrupt_when({});
  }
}

HEED_END
