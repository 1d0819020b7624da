#pragma once
/// From samples to batches. The order is a function of (seed, epoch), so that a run can be resumed
/// at any position, and does not depend on how many threads there are.
#include <cstdint>
#include <memory>
#include <vector>

#include "data/batches/batch.h"
#include "data/batches/dataset.h"

namespace heed {

struct BatchOptions {
  /// Limit for either side of a batch, <s> or </s> counted; a longer sample is a batch of its own.
  std::int64_t batch_tokens = 4096;
  std::int64_t batch_sequences = 0;  ///< > 0: so many samples a batch instead
  std::int64_t context = 0;          ///< lm: tokens a window
  std::uint64_t seed = 1;
};

/// A place in the run: `batch` batches of `epoch` have been handed out.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;

  friend bool operator==(const Position&, const Position&) = default;
};

/// The endless sequence of training batches: epoch after epoch, each with every sample exactly
/// once.
///
/// seq2seq: samples are shuffled, cut into stretches of about 100 batches, sorted by length within
/// a stretch, cut into batches, and the batches of the epoch shuffled. Alike lengths in a batch
/// make its shards alike in cost.
/// lm: the text is cut into windows of `context` tokens from a random shift on (what comes before
/// the shift, and the end, make shorter windows), so that each epoch predicts every token but the
/// first once; windows are shuffled. Batch::samples names a window by the place of its first token.
///
/// A copy is independent. The dataset must outlive the stream.
class BatchStream {
 public:
  /// Throws Error(bad_input) where there is nothing to train on, Error(usage) for impossible
  /// options.
  BatchStream(const Dataset& data, const BatchOptions& options);

  Batch next();
  Position position() const { return position_; }  ///< of the batch that next() gives
  void seek(Position position);  ///< Error(bad_input) where there is no such batch
  std::int64_t batches_in(std::int64_t epoch);
  double epochs_done();  ///< position as a fraction, for example 2.5

 private:
  using Group = std::vector<std::int64_t>;  // samples of one batch
  const std::vector<Group>& plan(std::int64_t epoch);

  const Dataset* data_;
  BatchOptions options_;
  Position position_;
  std::shared_ptr<const std::vector<Group>> plan_;  // of plan_epoch_; copies of the stream share it
  std::int64_t plan_epoch_ = -1;
};

/// Produces the batches of a stream on a thread of its own, a few ahead, so that training never
/// waits. What the stream throws, next() throws. To seek, make a new one.
class Prefetcher {
 public:
  explicit Prefetcher(BatchStream stream, std::int64_t ahead = 4);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  Batch next();
  Position position() const;  ///< of the batch that next() gives: what a checkpoint has to remember
  double epochs_done() const;  ///< after the batches handed out so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Every sample once, in a fixed order, alike lengths together; Batch::samples says which. For lm
/// the whole text in consecutive windows of `context` tokens, the last one shorter. An empty
/// dataset gives no batches.
std::vector<Batch> evaluation_batches(const Dataset& data, const BatchOptions& options);

/// The samples named, in that order, as a batch. For lm: windows of up to `context` tokens from
/// there.
Batch make_batch(const Dataset& data, const std::vector<std::int64_t>& samples,
                 std::int64_t context = 0);

/// Cuts a batch into at most `count` contiguous groups of whole sequences of about the same cost: a
/// group exceeds the mean by less than the costliest sequence. No group is empty, so there are fewer
/// where sequences are few or very unequal. A function of batch and cost alone.
std::vector<Batch> shard(const Batch& batch, std::int64_t count, TokenCost cost = {});

}  // namespace heed
