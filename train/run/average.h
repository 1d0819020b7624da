#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"

namespace heed {

struct Average {
  std::filesystem::path folder;
  std::int64_t checkpoints = 0;  ///< that the mean is of
};

/// Writes RUN/average: the mean, value by value, of the weights of the newest `count` checkpoints
/// (Vaswani et al. 2017, section 6.1, average their last 5 to 20). Damaged ones are passed over and
/// added to `skipped`, for a warning. Throws Error(bad_input) where there is no
/// valid checkpoint.
Average write_average(const RunFolder& run, const CheckpointFolder& checkpoints, std::int64_t count,
                      std::vector<std::string>& skipped);

}  // namespace heed
