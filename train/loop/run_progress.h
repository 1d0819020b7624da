#pragma once
/// The progress of a run.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/batches/batcher.h"
#include "nn/models/model.h"

HEED_BEGIN

/// The state in a checkpoint besides weights and moments.
struct Progress {
  std::int64_t step = 0;           ///< steps done
  Position position;               ///< of the next batch
  std::int64_t target_tokens = 0;  ///< seen in training
  double seconds = 0;              ///< of training, over all sessions
  std::optional<double> best;      ///< best value of the deciding metric
  std::int64_t best_step = 0;
  std::int64_t validations_without_improvement = 0;  ///< validations since
  std::string best_criterion;                        ///< the metric and data of `best`
  std::string batches;                 ///< what `position` refers to: data, seed, size
  bool validation_due = false;         ///< at this step; postponed by a signal
  std::int64_t skipped = 0;            ///< steps skipped because they were not finite
  std::int64_t consecutive_skips = 0;  ///< of them, the latest consecutive ones
  LossCounts window;                   ///< since the last record of training
  double window_seconds = 0;

  nlohmann::json json() const;
  static Progress from(const nlohmann::json& state);
};

HEED_END
