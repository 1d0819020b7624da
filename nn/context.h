#pragma once
/// The context in which a layer runs: the rows of each sequence, the output of the
/// encoder, whether the model trains, and, when decoding, the cache.
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "autograd/attention.h"
#include "autograd/base/all_reduce.h"
#include "autograd/base/random.h"
#include "autograd/memory/arena.h"
#include "autograd/tensor.h"
#include "nn/segment_memory.h"

namespace heed {

/// Sequences lie end to end in a matrix of rows: sequence i owns rows [offsets[i], offsets[i + 1]).
using Offsets = std::span<const std::int32_t>;

/// The offsets of sequences of these lengths: {3, 0, 1} gives {0, 3, 3, 4}.
inline std::vector<std::int32_t> offsets_of(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t n : lengths) offsets.push_back(offsets.back() + n);
  return offsets;
}

/// One run of a model over one shard: whether it trains (dropout on), and the source of its random
/// numbers. Each dropout takes the next key, so a mask is a function of (seed, step, shard, number
/// of the dropout).
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t shard = 0;          ///< below 4096
  std::uint32_t dropouts = 0;       ///< dropout keys taken so far; below 65536
  bool recompute = false;           ///< blocks keep their inputs only, and run again in backward
  AllReduce* all_reduce = nullptr;  ///< sums batch statistics over the shards of the step

  RandomKey next_key() { return {seed, Stream::dropout, step, (shard << 16) | dropouts++}; }
  double rate(double p) const { return training ? p : 0.0; }
};

}  // namespace heed

HEED_BEGIN

/// Offsets that a model computes in each step.
using ComputedOffsets = std::vector<std::int32_t, ArenaAllocator<std::int32_t>>;

/// The output of the encoder, which cross-attention reads: sequence i of x attends to sequence i of
/// it.
struct EncoderOutput {
  Tensor rows;  ///< [encoder rows, d]
  ComputedOffsets offsets;

  EncoderOutput() = default;
  EncoderOutput(Tensor r, Offsets o) : rows(std::move(r)), offsets(o.begin(), o.end()) {}
};

/// The cache of one layer. Self-attention keeps rows of keys and values side by side, [rows, 2 d];
/// another mixer stores what it needs of each position, by default its input (Mixer::step).
struct LayerCache {
  std::vector<Array> entries;  ///< entries[t]: position t, a row for each hypothesis at that step
  Array encoder_keys_values;   ///< of cross-attention, computed when first needed
  Array distances;  ///< keys of distances 0 and up, as many as were needed (LayerPositions)
};

/// The cache of decoding, so that a step computes one new row per hypothesis instead of whole
/// sequences. The rows of earlier positions never move: when a beam search keeps, drops or copies
/// hypotheses, only `paths` and `sequence` change, and they are shared by all layers.
struct Cache {
  std::int64_t position = -1;                    ///< of each hypothesis's newest row
  std::vector<std::vector<std::int32_t>> paths;  ///< paths[i][t]: hypothesis i's row in entries[t]
  std::vector<std::int32_t> sequence;            ///< the encoder sequence that hypothesis i reads
  std::vector<LayerCache> layers;

  explicit Cache(std::int64_t hypotheses) : paths(hypotheses), sequence(hypotheses) {
    std::iota(sequence.begin(), sequence.end(), 0);
  }
  /// Adds a row to each hypothesis: row i of the new position is hypothesis i's.
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

/// The context in which a block runs. With a cache, x holds one new row for each hypothesis, and no
/// gradients are recorded.
struct Context {
  Offsets offsets;                      ///< of the rows of x
  const EncoderOutput* encoder_output;  ///< for blocks with cross-attention; else nullptr
  Pass& pass;
  Cache* cache = nullptr;  ///< decoding: row i of x is the new row of hypothesis i
  bool prefill = false;    ///< with a cache: x holds the rows of a prompt that all hypotheses share
  std::size_t layer = 0;   ///< whose cache or segment memory a block uses; counted by the stack
  std::span<const ScoreTermPtr> terms = {};  ///< of self-attention's scores (Positions)
  /// Which rows self-attention reads, in place of the model's own choice: a prefix
  /// (autograd/ops/attention/prefix.h), any mask (mask.h). It must be causal where the block is.
  PatternPtr pattern = nullptr;
  Lanes lanes = {};  ///< where self-attention finds the keys of earlier segments

  /// The position of a sequence's first row.
  std::int64_t first_position() const { return cache != nullptr ? cache->position : 0; }
};

// ---- former names, for one release ---------------------------------------------------------

using OwnOffsets [[deprecated("use ComputedOffsets")]] = ComputedOffsets;
using Memory [[deprecated("use EncoderOutput")]] = EncoderOutput;

HEED_END
