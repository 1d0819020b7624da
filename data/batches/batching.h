#pragma once
/// How the samples of a dataset become batches.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/batches/batch.h"
#include "data/batches/draw.h"

namespace heed {

struct Dataset;

struct BatchOptions {
  /// Limit for the rows of either side of a batch, <s> or </s> counted; a longer sample is a
  /// separate batch.
  std::int64_t batch_tokens = 4096;
  std::int64_t batch_sequences = 0;  ///< > 0: this many samples per batch instead
  std::int64_t context = 256;        ///< tokens per window of a text
  /// For a text: sequence i of a batch continues sequence i of the previous batch. The text is cut
  /// into as many lanes as a batch has sequences, and each lane is read from start to end.
  bool lanes = false;
  std::uint64_t seed = 1;
};

/// The sample numbers of one batch.
using SampleGroup = std::vector<std::int64_t>;

/// A rule that plans the batches of an epoch and makes them. All functions are pure.
class Batching {
 public:
  virtual ~Batching() = default;
  /// Throws Error(bad_input) if there is nothing to train on.
  virtual void check_trainable(const Dataset& data) const = 0;
  /// The batches of a training epoch, a function of (seed, epoch).
  virtual std::vector<SampleGroup> epoch(const Dataset& data, const BatchOptions& options,
                                         std::int64_t epoch) const = 0;
  /// Every sample once, in a fixed order, grouped by similar length.
  virtual std::vector<SampleGroup> evaluation(const Dataset& data,
                                              const BatchOptions& options) const = 0;
  /// The samples, in that order, as a batch of that epoch, or of an evaluation if there is none.
  virtual Batch batch(const Dataset& data, const SampleGroup& samples, const BatchOptions& options,
                      std::optional<std::int64_t> epoch) const = 0;
};

/// Samples that are sequences. Samples are shuffled, cut into stretches of about 100 batches,
/// sorted by length within a stretch, cut into batches, and the batches of the epoch shuffled.
/// Similar lengths in a batch make its shards similar in cost.
class SequenceBatching : public Batching {
 public:
  void check_trainable(const Dataset& data) const override;
  std::vector<SampleGroup> epoch(const Dataset& data, const BatchOptions& options,
                                 std::int64_t epoch) const override;
  std::vector<SampleGroup> evaluation(const Dataset& data,
                                      const BatchOptions& options) const override;
  Batch batch(const Dataset& data, const SampleGroup& samples, const BatchOptions& options,
              std::optional<std::int64_t> epoch) const override;

 protected:
  struct Rows {
    std::int64_t source = 0, target = 0;
  };
  /// What a sample adds to each side of a batch.
  virtual Rows rows(const Dataset& data, std::int64_t sample) const = 0;
  virtual void add(const Dataset& data, const Draw& draw, Batch& batch) const = 0;

 private:
  std::vector<SampleGroup> cut(const Dataset& data, const SampleGroup& order,
                               const BatchOptions& options) const;
};

/// Pairs of sequences: the decoder reads <s> y1 … yn and predicts y1 … yn </s>. With
/// Dataset::segmentation, each epoch draws new segmentations; which lines form a batch
/// depends on the lengths of the usual ones.
const Batching& pairs();

/// Appends <s> y1 … yn to the target of a batch, and y1 … yn </s> to its labels.
void push_target(std::span<const std::int32_t> target, Batch& batch);

/// Windows of `context` tokens of a continuous text, from a random shift on (the part before the
/// shift and the end of the text give shorter windows), so that each epoch predicts every token
/// except the first once; windows are shuffled. A sample's number is the position of its first
/// token. With BatchOptions::lanes, windows are not shuffled, and an epoch omits the tokens before
/// the shift and those that would make some lanes longer than others.
const Batching& windows();

}  // namespace heed
