#pragma once
/// Augmentation of a shard before the forward pass: token cutoff and the second copy of R-Drop.
#include <cstdint>
#include <optional>

#include "data/batches/batch.h"
#include "train/loop/step.h"

HEED_BEGIN

/// A copy of the shard with StepOptions::cutoff and rdrop applied; nullopt if both are off. The
/// seed, the step and the shard's number determine which tokens are replaced.
///   cutoff: replaces each input token except <unk>, <s> and </s> by <unk> with this probability.
///           Labels do not change. Source: Shen et al., "A Simple but Tough-to-Beat Data
///           Augmentation Approach", 2020, who set the embedding to zero.
///   rdrop:  repeats every sequence, for LossOptions::rdrop. Cutoff differs between the copies.
std::optional<Batch> augmented(const Batch& shard, std::int64_t number, std::int64_t step,
                               const StepOptions& options);

HEED_END
