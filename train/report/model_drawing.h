#pragma once
/// A drawing of a config's model, in the style of figure 1 of Vaswani et al. 2017.
#include <string>

#include "train/config/config.h"
#include "train/report/model_summary.h"

namespace heed {

/// An SVG file: a column for each stack, read from the bottom to the top. Each part says how many
/// parameters it has, and its tooltip lists them with their shapes, under the names that `heed show`
/// prints; blocks that are alike are drawn once, in a frame with their number.
std::string model_drawing(const Config& config, const Vocabulary& vocabulary);

}  // namespace heed
