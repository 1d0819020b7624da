#pragma once
/// The context in which a layer runs: the rows of each sequence, the output of the encoder, the
/// mode (training or evaluation) and, in decoding, the cache.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "autograd/base/all_reduce.h"
#include "autograd/base/random.h"
#include "autograd/memory/block.h"
#include "autograd/ops/more/attention/options.h"
#include "autograd/tensor.h"
#include "nn/segment_memory.h"

namespace heed {

/// Sequences are concatenated in a matrix of rows: sequence i has rows offsets[i] to
/// offsets[i + 1] − 1.
using Offsets = std::span<const std::int32_t>;

/// The offsets of sequences of these lengths: {3, 0, 1} → {0, 3, 3, 4}.
inline std::vector<std::int32_t> offsets_of(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t n : lengths) offsets.push_back(offsets.back() + n);
  return offsets;
}

/// The length of the longest sequence.
inline std::int64_t max_length_of(Offsets offsets) {
  std::int32_t max_length = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    max_length = std::max(max_length, offsets[s + 1] - offsets[s]);
  return max_length;
}

/// One pass of a model over one shard: the mode (dropout is active only in training) and the source
/// of random numbers. Each dropout uses the next key, so a mask is a function of (seed, step,
/// shard, index of the dropout).
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t shard = 0;          ///< index of the shard, less than 4096
  std::uint32_t dropouts = 0;       ///< number of dropout keys used so far, less than 65536
  bool recompute = false;           ///< blocks store only their inputs; backward runs them again
  AllReduce* all_reduce = nullptr;  ///< sums batch statistics over the shards of the step

  RandomKey next_key() { return {seed, Stream::dropout, step, (shard << 16) | dropouts++}; }
  double rate(double p) const { return training ? p : 0.0; }
};

}  // namespace heed

HEED_BEGIN

/// Offsets that a model computes in each step.
using ComputedOffsets = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

/// The output of the encoder, which cross-attention reads: sequence i of the decoder attends to
/// sequence i of the encoder; in decoding, hypothesis i attends to sequence Cache::sequence[i].
struct EncoderOutput {
  Tensor rows;  ///< [encoder rows, d]
  ComputedOffsets offsets;

  EncoderOutput() = default;
  EncoderOutput(Tensor r, Offsets o) : rows(std::move(r)), offsets(o.begin(), o.end()) {}
};

/// The cache of one layer. Self-attention stores keys next to values, [hypotheses, 2 e] for each
/// position (nn/layers/attention.h); the default of Mixer::step stores the input of each position.
/// Linear attention and the other built-in mixers store only their newest state.
struct LayerCache {
  /// entries[t]: position t, with one row per hypothesis at that step, or a single row for a
  /// position of a prompt.
  std::vector<Array> entries;
  Array encoder_keys_values;  ///< keys and values of cross-attention, computed once
  Array distances;            ///< relative_xl: keys of the distances 0, 1, … (LayerPositions)
};

/// The cache for decoding, with which a step computes one new row per hypothesis instead of whole
/// sequences. The rows of earlier positions never move: when a beam search keeps, drops or copies
/// hypotheses, only `paths` and `sequence` change, which all layers share.
struct Cache {
  std::int64_t position = -1;  ///< position of the newest row of each hypothesis; −1: no row
  std::vector<std::vector<std::int32_t>> paths;  ///< paths[i][t]: hypothesis i's row in entries[t]
  std::vector<std::int32_t> sequence;            ///< the encoder sequence that hypothesis i reads
  std::vector<LayerCache> layers;

  explicit Cache(std::int64_t hypotheses) : paths(hypotheses), sequence(hypotheses) {
    std::iota(sequence.begin(), sequence.end(), 0);
  }
  /// Adds a position, at which hypothesis i has row i.
  void grow() {
    ++position;
    for (std::size_t i = 0; i < paths.size(); ++i) paths[i].push_back(static_cast<std::int32_t>(i));
  }
  /// New hypothesis i continues old hypothesis parents[i].
  void select(std::span<const std::int32_t> parents) {
    Cache chosen(0);
    for (const std::int32_t p : parents) {
      chosen.paths.push_back(paths[p]);
      chosen.sequence.push_back(sequence[p]);
    }
    paths = std::move(chosen.paths);
    sequence = std::move(chosen.sequence);
  }
};

/// The context in which a block runs. With a cache, x contains one new row per hypothesis (or a
/// prompt, see `prefill`), and the thread must not record ops (NoGrad).
struct Context {
  Offsets offsets;                      ///< offsets of the sequences in x
  const EncoderOutput* encoder_output;  ///< input of cross-attention; may be null if there is none
  Pass& pass;
  Cache* cache = nullptr;  ///< decoding: row i of x is the new row of hypothesis i
  bool prefill = false;    ///< x contains a prompt that all hypotheses share (requires a cache)
  std::size_t layer = 0;   ///< index of the block in its stack, which selects its cache and memory
  std::span<const ScoreTermPtr> terms = {};  ///< score terms of self-attention (Positions)
  /// Replaces the model's pattern of self-attention, for example by a prefix
  /// (autograd/ops/more/attention/prefix.h) or any mask (mask.h). In a causal block, it must exclude the
  /// later keys that a query may not read.
  PatternPtr pattern = nullptr;
  Lanes lanes = {};  ///< lanes of the sequences in the segment memory

  /// The position of the first row of each sequence.
  std::int64_t first_position() const { return cache != nullptr ? cache->position : 0; }
};

// ---- former names, for one release ---------------------------------------------------------

using OwnOffsets [[deprecated("use ComputedOffsets")]] = ComputedOffsets;
using Memory [[deprecated("use EncoderOutput")]] = EncoderOutput;

HEED_END
