#pragma once
/// The memory of a language model that reads a long text in segments.
#include <cstdint>
#include <vector>

#include "autograd/memory/array.h"

HEED_BEGIN

/// The keys and values that each self-attention layer computed for the last tokens of earlier
/// segments. A token attends to them as it does to those of the current segment. They receive no
/// gradient and are not recomputed when the weights change. The sequences of a batch are lanes:
/// lane i continues lane i of the previous batch.
/// Source: Dai et al., "Transformer-XL", 2019, section 3.2 (where the memory contains the inputs of
/// the layers instead).
///
/// Each shard reads and writes only its lanes, so shards may run concurrently. New values become
/// readable in the next segment (advance), so running a shard twice gives the same result.
class SegmentMemory {
 public:
  SegmentMemory() = default;
  /// A memory of the last `tokens` tokens of each lane, with `width` values per token in each of
  /// `layers` layers.
  SegmentMemory(std::int64_t tokens, std::int64_t layers, std::int64_t width)
      : tokens_(tokens), width_(width), kept_(layers), next_(layers) {}

  /// Starts a batch of `lanes` sequences of at most `max_length` tokens. Clears the memory, or
  /// keeps it if the batch continues the previous one. A batch that continues may have fewer lanes
  /// (the texts of the last lanes have ended); with more lanes, begin throws Error(failed). A lane
  /// shorter than the others must be at the end of its text: it must not continue.
  void begin(bool continues, std::int64_t lanes, std::int64_t max_length);
  /// Ends the batch: the values that the layers wrote become the memory.
  void advance();

  std::int64_t length() const { return length_; }  ///< number of stored tokens per lane
  /// The stored rows of one lane in a layer: [length(), width()], keys next to values.
  const real* lane(std::size_t layer, std::int64_t lane) const {
    return kept_[layer].data() + lane * length_ * width_;
  }
  /// Stores the keys and values that a layer has computed for the `rows` tokens of a lane's new
  /// segment.
  void write(std::size_t layer, std::int64_t lane, const real* values, std::int64_t rows);
  std::int64_t width() const { return width_; }

  /// The contents, for checkpoints: an array [lanes, length, width] for each layer.
  const std::vector<Array>& arrays() const { return kept_; }
  void restore(std::vector<Array> arrays);

 private:
  std::int64_t tokens_ = 0, width_ = 0, length_ = 0, next_length_ = 0;
  std::vector<Array> kept_, next_;
};

/// The lanes of a shard: sequence i of the shard is lane first + i. Without a memory, sequences are
/// independent.
struct Lanes {
  SegmentMemory* memory = nullptr;
  std::int64_t first = 0;
};

HEED_END
