#pragma once
/// The tensors of a checkpoint, which also contains the progress of the run:
///
///   model.safetensors      the weights and buffers; with train.ema, the means of the weights
///   training.safetensors   the moments; with train.ema, also the weights
///   memory.safetensors     the segment memory, a tensor for each layer; no file if it is empty
#include "train/loop/replica.h"
#include "train/loop/weight_ema.h"
#include "train/run/checkpoint_folder.h"

HEED_BEGIN

/// The files of a checkpoint of this step. They refer to the tensors of the run, so they must be
/// written before the next step. Throws Error(non_finite) if a weight or moment is not finite.
std::vector<CheckpointFile> checkpoint_of(Replica& replica, const std::optional<WeightEma>& ema,
                                          std::int64_t step);
/// Loads the tensors of a checkpoint, also one that was written with another train.ema. Throws
/// Error(bad_input) if they do not fit the model, and Error(io).
void restore_from(const std::filesystem::path& folder, Replica& replica,
                  std::optional<WeightEma>& ema);

HEED_END
