#pragma once
/// From samples to batches. The order is a function of (seed, epoch), so a run can be resumed at any
/// position, and does not depend on the number of threads.
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "data/batches/batching.h"
#include "data/batches/dataset.h"

namespace heed {

/// A position in the run: `batch` batches of `epoch` have been returned.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

/// The endless sequence of training batches: each epoch has every sample exactly once, in the order
/// of the dataset's Batching.
///
/// A copy is independent. The dataset must outlive the stream.
class BatchStream {
 public:
  /// Throws Error(bad_input) if there is nothing to train on.
  BatchStream(const Dataset& data, const BatchOptions& options);

  Batch next();
  Position position() const { return position_; }  ///< of the batch that next() gives
  void seek(Position position);                    ///< Error(bad_input) if there is no such batch
  std::int64_t batches_in(std::int64_t epoch);
  double epochs_done();  ///< position as a fraction, for example 2.5

 private:
  const std::vector<SampleGroup>& plan(std::int64_t epoch);

  const Dataset* data_;
  BatchOptions options_;
  Position position_;
  std::shared_ptr<const std::vector<SampleGroup>> plan_;  // of plan_epoch_; copies share it
  std::int64_t plan_epoch_ = -1;
};

/// Makes the next batch of a stream on another thread while training uses the current one. next()
/// rethrows what the stream throws. To seek, create a new one.
class Prefetcher {
 public:
  explicit Prefetcher(BatchStream stream);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  Batch next();
  Position position() const { return position_; }  ///< of the batch that next() gives
  double epochs_done() const { return epochs_; }   ///< after the batches returned so far

 private:
  void begin_next();

  BatchStream stream_;  // used only by the thread that makes the next batch
  Position position_;
  double epochs_;
  std::future<Batch> batch_;  // waits for its thread when destroyed
};

/// A whole split, in the order of Batching::evaluation. An empty dataset gives no batches.
std::vector<Batch> evaluation_batches(const Dataset& data, const BatchOptions& options);

/// The given samples, in that order, as a batch; for a text, windows of up to `context` tokens that
/// begin there.
Batch make_batch(const Dataset& data, const SampleGroup& samples, std::int64_t context = 0);

/// Cuts a batch into at most `count` contiguous groups of whole sequences with about the same cost:
/// a group exceeds the mean by less than the costliest sequence. No group is empty, so there are
/// fewer if sequences are few or very unequal. Depends only on batch and cost.
std::vector<Batch> shard(const Batch& batch, std::int64_t count, TokenCost cost = {});

}  // namespace heed
