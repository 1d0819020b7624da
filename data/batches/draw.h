#pragma once
#include <cstdint>
#include <optional>

#include "autograd/base/random.h"

namespace heed {

/// What determines the random choices in a sample: training makes new ones in each epoch, an
/// evaluation (no epoch) always the same, whatever the seed.
struct Draw {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> epoch = std::nullopt;
  std::int64_t sample = 0;

  Random random(Stream stream, std::uint32_t part = 0) const;
};

}  // namespace heed
