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

/// The step at which the last fifth of a run begins, ⌊4/5 · last_step⌋. Checkpoints of earlier
/// steps differ too much from the last for a useful mean.
std::int64_t first_averaged_step(std::int64_t last_step);

/// Sets the parameters to the elementwise mean of the weights of the newest checkpoints, at most
/// `count` and from step `first` on, and returns their steps, newest first. With fewer than two
/// checkpoints, the parameters are unchanged. Damaged checkpoints are skipped, and their errors
/// added to `damaged`. Checkpoints saved on request, except the newest, are skipped silently,
/// because the step at which a run was stopped must not affect its weights.
std::vector<std::int64_t> load_average(const CheckpointFolder& checkpoints, std::int64_t count,
                                       std::int64_t first, std::span<const NamedTensor> parameters,
                                       std::vector<std::string>& damaged);

/// Writes the parameters (the mean of these steps) to RUN/average.
void write_average(const RunFolder& run, std::span<const NamedTensor> parameters,
                   const std::vector<std::int64_t>& steps);

HEED_END
