#pragma once
/// Checks the gradients of a config's model in float64. (Independent of `real`, so that the rest of
/// the program, built with real = float, can call it.)
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "train/config/config.h"

namespace heed {

struct GradcheckReport {
  bool passed = false;
  std::string text;       ///< the table, as `heed gradcheck` prints it
  nlohmann::json record;  ///< the table as an object, as with --json
};

/// Checks `entries` entries of each parameter; 0: 4 to 256, as many as fit in about 40 s. Calls
/// `on_parameter` after each check of a parameter; an exception that it throws ends the check.
GradcheckReport gradcheck_of(const Config& config, std::int64_t entries,
                             const std::function<void()>& on_parameter);

}  // namespace heed
