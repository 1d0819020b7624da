#pragma once
/// What training does to a shard before the model reads it: word cutoff and R-Drop's second copy.
#include <cstdint>
#include <optional>

#include "data/batches/batch.h"
#include "train/loop/step.h"

HEED_BEGIN

/// The shard with StepOptions::cutoff and rdrop applied; none if both are off. Which tokens are cut
/// depends on the seed, the step and the number of the shard.
///   cutoff: each token read, specials excepted, becomes <unk> with this probability. The labels stay.
///           Source: Shen et al., "A Simple but Tough-to-Beat Data Augmentation Approach", 2020, who set
///           the embedding to zero.
///   rdrop:  every sequence is repeated, for LossOptions::rdrop; the copies are cut differently.
std::optional<Batch> augmented(const Batch& shard, std::int64_t number, std::int64_t step,
                               const StepOptions& options);

HEED_END
