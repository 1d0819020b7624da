#pragma once
/// The start of a distributed run: all ranks load the data and tokenizers, and check that their
/// data, config, program and arithmetic are equal.
#include <vector>

#include "train/config/config.h"
#include "train/distributed/agreement.h"
#include "train/tasks/data.h"

namespace heed {

/// Calls load_data on every rank with the tokenizers of rank 0: `given`, or those that load_data
/// trains or loads on rank 0. Each rank reads the data files. Throws on all ranks if one rank
/// fails. Sets the world's timeout. If `world` is null, only calls load_data.
ExperimentData load_data_together(World* world, const Config& config,
                                  const Tokenizers* given = nullptr);

/// Throws Error(usage) on all ranks if their results could differ in bits: compares program, config
/// (except name, threads and distributed), data, BLAS, vector instruction set, bf16, plugins and
/// teacher. On rank 0, the message names the ranks that differ.
void require_equal_ranks(World& world, const Config& config, const ExperimentData& data);
/// As above, but compares `facts` instead of the data.
void require_equal_ranks(World& world, const Config& config, std::vector<Fact> facts);

}  // namespace heed
