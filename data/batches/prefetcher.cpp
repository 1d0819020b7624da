#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "data/batches/batcher.h"

namespace heed {

/// One producer, one consumer, a bounded queue.
struct Prefetcher::State {
  struct Item {
    Batch batch;
    Position after;
    double epochs = 0;
  };

  explicit State(BatchStream s, std::size_t depth)
      : stream(std::move(s)),
        ahead(depth),
        position(stream.position()),
        epochs(stream.epochs_done()) {}

  BatchStream stream;  // used only by the producer
  const std::size_t ahead;

  std::mutex mutex;  // guards everything below
  std::condition_variable wake_producer, wake_consumer;
  std::deque<Item> ready;
  std::exception_ptr failure;
  bool stop = false;

  Position position;  // used only by the consumer
  double epochs;

  std::thread producer;

  void produce() {
    for (;;) {
      Item item;
      std::exception_ptr failed;
      try {
        item.batch = stream.next();
        item.after = stream.position();
        item.epochs = stream.epochs_done();
      } catch (...) {
        failed = std::current_exception();
      }
      std::unique_lock lock(mutex);
      wake_producer.wait(lock, [&] { return stop || failed || ready.size() < ahead; });
      if (stop) return;
      if (failed) {
        failure = failed;
      } else {
        ready.push_back(std::move(item));
      }
      wake_consumer.notify_one();
      if (failed) return;
    }
  }
};

Prefetcher::Prefetcher(BatchStream stream, std::int64_t ahead)
    : state_(std::make_unique<State>(std::move(stream),
                                     static_cast<std::size_t>(ahead > 0 ? ahead : 1))) {
  state_->producer = std::thread([state = state_.get()] { state->produce(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake_producer.notify_one();
  state_->producer.join();
}

Batch Prefetcher::next() {
  std::unique_lock lock(state_->mutex);
  state_->wake_consumer.wait(lock, [&] { return !state_->ready.empty() || state_->failure; });
  if (state_->ready.empty()) std::rethrow_exception(state_->failure);
  State::Item item = std::move(state_->ready.front());
  state_->ready.pop_front();
  lock.unlock();
  state_->wake_producer.notify_one();
  state_->position = item.after;
  state_->epochs = item.epochs;
  return std::move(item.batch);
}

Position Prefetcher::position() const { return state_->position; }
double Prefetcher::epochs_done() const { return state_->epochs; }

}  // namespace heed
