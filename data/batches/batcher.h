#pragma once
/// Batches of the samples of a dataset. Their order is a function of (seed, epoch) and independent
/// of the number of threads, so a run can be resumed at any position.
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "data/batches/batching.h"
#include "data/batches/dataset.h"

namespace heed {

/// A position in a run: the epoch, and the number of its batches that have been returned.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

/// The infinite sequence of training batches: those of each epoch in turn, as planned by
/// Dataset::batching.
///
/// A copy advances independently. The dataset must outlive the stream.
class BatchStream {
 public:
  /// Throws Error(bad_input) if the dataset contains no trainable sample.
  BatchStream(const Dataset& data, const BatchOptions& options);

  Batch next();
  Position position() const { return position_; }  ///< position of the next batch
  void seek(Position position);  ///< throws Error(bad_input) if the position does not exist
  std::int64_t batches_in(std::int64_t epoch);
  double epochs_done();  ///< completed epochs, with the completed fraction of the current one

 private:
  const std::vector<SampleGroup>& plan(std::int64_t epoch);

  const Dataset* data_;
  BatchOptions options_;
  Position position_;
  std::shared_ptr<const std::vector<SampleGroup>> plan_;  // plan of plan_epoch_, shared by copies
  std::int64_t plan_epoch_ = -1;
};

/// Makes the next batch of a stream on a second thread while training uses the current one; if no
/// thread can be started, next() makes the batch. next() rethrows errors of the stream. To seek,
/// construct a new Prefetcher.
class Prefetcher {
 public:
  explicit Prefetcher(BatchStream stream);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  Batch next();
  Position position() const { return position_; }  ///< position of the next batch
  double epochs_done() const { return epochs_; }   ///< as BatchStream::epochs_done

 private:
  void begin_next();

  // While batch_ is being made, only the thread that makes it uses the stream.
  BatchStream stream_;
  Position position_;
  double epochs_;
  std::future<Batch> batch_;  // the last member: its destructor waits for the thread
};

/// The batches of a split, in the order of Batching::evaluation; none for an empty dataset.
std::vector<Batch> evaluation_batches(const Dataset& data, const BatchOptions& options);

/// A batch of the given samples for evaluation, in the given order.
Batch make_batch(const Dataset& data, const SampleGroup& samples);

/// Cuts a batch into at most `count` shards of consecutive whole sequences, with similar costs: the
/// cost of a shard exceeds the mean by less than the cost of the costliest sequence. No shard is
/// empty, so a batch of few or very unequal sequences may have fewer shards. The shards depend only
/// on `batch`, `count` and `cost`.
std::vector<Batch> shard(const Batch& batch, std::int64_t count, TokenCost cost = {});

}  // namespace heed
