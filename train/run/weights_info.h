#pragma once
/// Which weights a folder holds: every command that reads weights reports them.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/run/checkpoint_folder.h"

namespace heed {

struct WeightsInfo {
  std::filesystem::path folder;  ///< as it was found: RUN/best
  std::string name;              ///< best, last, average, step, or folder
  std::vector<std::int64_t>
      steps;  ///< the weights are of this step, or the mean of these; may be unknown

  WeightsInfo() = default;
  /// Weights without a checkpoint's record.
  explicit WeightsInfo(const std::filesystem::path& folder);
  /// The weights of a checkpoint, or of a mean of checkpoints.
  WeightsInfo(const std::filesystem::path& folder, const Checkpoint& checkpoint);

  std::string text() const;  ///< "best, step 2000 (runs/dates/best)"
  /// {"weights": "/…/checkpoints/step-00002000", "weights_name": "best", "weights_steps": [2000]}
  nlohmann::json json() const;
};

}  // namespace heed
