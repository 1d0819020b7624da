#pragma once
#include <cstdint>

#include "autograd/base/random.h"

namespace heed {

/// One run of a model over one shard: whether it trains (dropout on), and where its random numbers
/// are. Each dropout takes the next key, so the masks are a function of (seed, step, shard, which
/// dropout).
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t shard = 0;     ///< below 4096
  std::uint32_t dropouts = 0;  ///< counts up as the model runs; below 65536

  RandomKey next_key() { return {seed, Stream::dropout, step, (shard << 16) | dropouts++}; }
  double rate(double p) const { return training ? p : 0.0; }
};

}  // namespace heed
