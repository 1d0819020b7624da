#pragma once
/// A random part of many lines.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// All lines where there are at most `most`, in their order; else so many of them, drawn without
/// replacement from the seed alone, in the order of drawing.
std::vector<const std::string*> sample_lines(std::span<const std::string> lines, std::size_t most,
                                             std::uint64_t seed);

}  // namespace heed
