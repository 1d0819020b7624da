#include "data/tokenizers/line_sample.h"

#include <utility>

#include "autograd/base/random.h"

namespace heed {

std::vector<const std::string*> sample_lines(std::span<const std::string> lines, std::size_t most,
                                             std::uint64_t seed) {
  std::vector<const std::string*> chosen;
  for (const auto& line : lines) chosen.push_back(&line);
  if (chosen.size() <= most) return chosen;
  // A partial Fisher-Yates shuffle: place i gets one of the lines without a place.
  Random random({.seed = seed, .stream = Stream::data, .index = 0x73656E74});
  for (std::size_t i = 0; i < most; ++i) {
    const auto left = static_cast<std::uint32_t>(chosen.size() - i);
    std::swap(chosen[i], chosen[i + random.below(left)]);
  }
  chosen.resize(most);
  return chosen;
}

}  // namespace heed
