#pragma once
#include <cstdint>
#include <optional>

#include "autograd/base/random.h"

namespace heed {

/// The values that determine the random choices for a sample. Training makes new choices in each
/// epoch; an evaluation (no epoch) makes the same choices for every seed.
struct Draw {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> epoch = std::nullopt;
  std::int64_t sample = 0;

  Random random(Stream stream, std::uint32_t part = 0) const;
};

}  // namespace heed
