#pragma once
/// What a language model remembers of the text before the segment that it reads.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "autograd/memory/array.h"

HEED_BEGIN

/// The keys and values that each self-attention computed for the last tokens of earlier segments: a token
/// attends to them as to those of its own segment, but no gradient flows into them. They are as the
/// weights of their own step made them. The sequences of a batch are lanes: lane i of a batch continues
/// lane i of the batch before.
/// Source: Dai et al., "Transformer-XL", 2019, section 3.2, which remembers the layers' inputs instead.
///
/// Shards read and write the lanes of their own sequences, so they may run at once. What they write
/// counts from the next segment on (advance), so running a shard twice changes nothing.
class SegmentMemory {
 public:
  SegmentMemory() = default;
  /// Of the last `tokens` tokens in each of `layers` layers, with `width` values a token.
  SegmentMemory(std::int64_t tokens, std::int64_t layers, std::int64_t width)
      : tokens_(tokens), width_(width), kept_(layers), next_(layers) {}

  /// Before a batch of `lanes` sequences of at most `longest` tokens: keeps the memory if the batch
  /// continues the one before, else forgets it. Lanes may only end, the last ones first.
  void begin(bool continues, std::int64_t lanes, std::int64_t longest);
  /// After the batch: what the layers wrote is now the memory.
  void advance();

  std::int64_t length() const { return length_; }  ///< tokens remembered in each lane
  /// The rows of one lane in a layer: [length(), width], keys next to values.
  const real* lane(std::size_t layer, std::int64_t lane) const {
    return kept_[layer].data() + lane * length_ * width_;
  }
  /// Called by a layer: `rows` keys and values of the lane's new segment.
  void write(std::size_t layer, std::int64_t lane, const real* values, std::int64_t rows);
  std::int64_t width() const { return width_; }

  /// The memory as arrays [lanes, length, width], one for each layer; and from them.
  const std::vector<Array>& arrays() const { return kept_; }
  void restore(std::vector<Array> arrays);

 private:
  std::int64_t tokens_ = 0, width_ = 0, length_ = 0, next_length_ = 0;
  std::vector<Array> kept_, next_;
};

/// The lanes of a shard: its sequence i is lane first + i. Without a memory, a model reads each sequence
/// alone.
struct Lanes {
  SegmentMemory* memory = nullptr;
  std::int64_t first = 0;
};

HEED_END
