#pragma once
/// A random sample of lines.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// All lines, in their order, if there are at most `most`; else `most` of them, drawn without
/// replacement, in the order of drawing, which depends only on the seed.
std::vector<const std::string*> sample_lines(std::span<const std::string> lines, std::size_t most,
                                             std::uint64_t seed);

}  // namespace heed
