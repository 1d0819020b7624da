#pragma once
/// The rules by which the samples of a dataset become batches.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/batches/batch.h"
#include "data/batches/draw.h"
#include "data/tokenizers/special_ids.h"

namespace heed {

struct Dataset;

struct BatchOptions {
  /// The maximum number of rows on each side of a batch, <s> or </s> included; a longer sample
  /// forms a batch by itself. If the number of rows of a sample is random, an estimate counts.
  std::int64_t batch_tokens = 4096;
  std::int64_t batch_sequences = 0;  ///< number of samples in a batch; 0: batch_tokens applies
  std::int64_t context = 256;        ///< length of a window of a text, in tokens
  /// Texts only: sequence i of a batch continues sequence i of the previous batch. The text is cut
  /// into one lane per sequence of a batch, and each lane is read from start to end.
  bool lanes = false;
  std::uint64_t seed = 1;
};

/// The indices of the samples of one batch.
using SampleGroup = std::vector<std::int64_t>;

/// A rule that plans the batches of an epoch and makes them. All functions are pure.
class Batching {
 public:
  virtual ~Batching() = default;
  /// Throws Error(bad_input) if the dataset contains no trainable sample.
  virtual void check_trainable(const Dataset& data) const = 0;
  /// The batches of a training epoch, a function of (seed, epoch).
  virtual std::vector<SampleGroup> epoch(const Dataset& data, const BatchOptions& options,
                                         std::int64_t epoch) const = 0;
  /// The batches of an evaluation: every sample once, in a fixed order.
  virtual std::vector<SampleGroup> evaluation(const Dataset& data,
                                              const BatchOptions& options) const = 0;
  /// A batch of the samples, in the given order, for training in `epoch` or, if it is unset, for
  /// evaluation.
  virtual Batch batch(const Dataset& data, const SampleGroup& samples, const BatchOptions& options,
                      std::optional<std::int64_t> epoch) const = 0;
};

/// Batching of sequences. In each epoch, the samples are shuffled and cut into chunks of about 100
/// batches. Each chunk is sorted by length and cut into batches, and all batches are shuffled. The
/// sequences of a batch thus have similar lengths, and its shards have similar costs.
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
  /// The number of rows that a sample adds to each side of a batch; an estimate if that number is
  /// random.
  virtual Rows rows(const Dataset& data, std::int64_t sample) const = 0;
  virtual void add(const Dataset& data, const Draw& draw, Batch& batch) const = 0;

 private:
  std::vector<SampleGroup> cut(const Dataset& data, const SampleGroup& order,
                               const BatchOptions& options) const;
};

/// Pairs of sequences: the decoder reads <s> y1 … yn and predicts y1 … yn </s>. With
/// Dataset::segmentation, each epoch draws new segmentations; samples are still grouped by the
/// lengths of their deterministic segmentations.
const Batching& pairs();

/// Appends <s> y1 … yn to the target of a batch, and y1 … yn </s> to its labels.
void push_target(std::span<const std::int32_t> target, const SpecialIds& special, Batch& batch);

/// Windows of `context` tokens of a continuous text. A training epoch begins them at a random shift
/// and reads them in random order; the tokens before the shift and at the end of the text form
/// shorter windows, so the epoch predicts each token but the first exactly once. An evaluation
/// reads the windows in the order of the text, without a shift. The index of a sample is the
/// position of its first token. With BatchOptions::lanes, each lane reads its windows in the order
/// of the text, and a training epoch omits the shorter windows and windows that would give lanes
/// unequal lengths.
const Batching& windows();

}  // namespace heed
