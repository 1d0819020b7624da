#pragma once
/// Measures a config's training step.
#include <string>

#include "train/config/config.h"

namespace heed {

/// A table of the time of each op in a step. The measurement takes about as long as twenty steps.
std::string time_by_op(const Config& config);

}  // namespace heed
