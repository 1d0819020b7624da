#pragma once
/// How the ranks of a distributed run begin: with the same data, tokenizers and program.
#include <vector>

#include "train/config/config.h"
#include "train/distributed/agreement.h"
#include "train/tasks/data.h"

namespace heed {

/// load_data on every rank, with the tokenizers of rank 0, where they are trained or `given`. Each
/// rank reads the data files itself. Without a world, load_data. Throws on all ranks if it fails on one.
/// Sets the world's timeout.
ExperimentData load_data_together(World* world, const Config& config,
                                  const Tokenizers* given = nullptr);

/// Throws Error(usage) on all ranks, naming those that differ, unless all would compute the same bits:
/// program, config, data, BLAS and its code, vectors, bf16, plugins, teacher.
void require_equal_ranks(World& world, const Config& config, const ExperimentData& data);
/// The same with these facts in place of the data.
void require_equal_ranks(World& world, const Config& config, std::vector<Fact> facts);

}  // namespace heed
