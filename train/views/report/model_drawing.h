#pragma once
/// A drawing of a config's model, in the style of figure 1 of Vaswani et al. 2017.
#include <string>

#include "train/config/config.h"
#include "train/views/report/model_summary.h"

namespace heed {

/// An SVG file with one column per stack, read from bottom to top. Each part with parameters shows
/// their number; its tooltip lists their names (as in `heed show`) and shapes. Equal blocks are
/// drawn once, in a frame labelled with their number.
std::string model_drawing(const Config& config, const Vocabulary& vocabulary);

}  // namespace heed
