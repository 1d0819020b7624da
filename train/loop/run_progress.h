#pragma once
/// The progress of a training run.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/batches/batcher.h"
#include "nn/models/model.h"

HEED_BEGIN

/// The state that a checkpoint contains besides tensors.
struct Progress {
  std::int64_t step = 0;           ///< number of completed steps, including skipped steps
  Position position;               ///< position of the next batch
  std::int64_t target_tokens = 0;  ///< number of target tokens trained on
  double seconds = 0;              ///< training time over all sessions, in seconds
  std::optional<double> best;      ///< best value of the deciding metric so far
  std::int64_t best_step = 0;
  std::int64_t validations_without_improvement = 0;  ///< number of validations since the best
  std::string best_criterion;                        ///< metric and data of `best`
  std::string batches;                 ///< data, seed and batch size that `position` refers to
  bool validation_due = false;         ///< true: the weights of this step must still be validated
  std::int64_t skipped = 0;            ///< number of non-finite steps that were skipped
  std::int64_t consecutive_skips = 0;  ///< number of consecutive skips up to this step
  LossCounts window;                   ///< sums since the last record of kind "train"
  double window_seconds = 0;           ///< training time since that record

  nlohmann::json json() const;
  static Progress from(const nlohmann::json& state);
};

HEED_END
