#pragma once
/// Where a non-finite value first appeared in a step.
#include <span>
#include <string>

#include "autograd/named_tensor.h"
#include "train/loop/step.h"

HEED_BEGIN

/// Repeats the shards of a step whose loss or gradients are not finite, checking every tensor, and
/// reports which was the first to hold NaN or infinity, in which shard, and which samples that
/// shard consists of. Takes a few times as long as the step.
std::string explain_non_finite(const Model& model, std::span<const NamedTensor> parameters,
                               std::span<const Batch> shards, std::int64_t step,
                               const StepOptions& options);

HEED_END
