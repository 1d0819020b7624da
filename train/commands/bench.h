#pragma once
/// Measurements of a config's training step.
#include <string>

#include "train/config/config.h"

namespace heed {

/// The time of each op in a step, as a table; takes as long as about twenty steps.
std::string time_by_op(const Config& config);

}  // namespace heed
