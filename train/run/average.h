#pragma once
/// The mean of the weights of several checkpoints. Vaswani et al. 2017, section 6.1, average the
/// last 5 (base models) or 20 (big models) checkpoints.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"

HEED_BEGIN

/// Sets the parameters to the elementwise mean of the weights of the newest checkpoints, at most
/// train.average, and returns their steps, newest first. Checkpoints before the last fifth of the
/// run, which ends at `last_step`, differ too much from the last for a useful mean. With fewer than
/// two checkpoints, returns none and leaves the parameters unchanged. Damaged checkpoints are
/// skipped. Checkpoints saved on request, except the newest, are skipped silently, because the step
/// at which a run was stopped must not affect its weights. Adds messages for the user to `notes`.
std::vector<std::int64_t> load_average(const CheckpointFolder& checkpoints,
                                       const TrainOptions& train, std::int64_t last_step,
                                       std::span<const NamedTensor> parameters,
                                       std::vector<std::string>& notes);

/// Writes the parameters (the mean of these steps) to RUN/average, with trained_with() of the run.
void write_average(const RunFolder& run, std::span<const NamedTensor> parameters,
                   const std::vector<std::int64_t>& steps, const nlohmann::json& trained_with);
/// Removes RUN/average, if it exists.
void remove_average(const RunFolder& run);

HEED_END
