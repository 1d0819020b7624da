#pragma once
/// Models as a config describes them.
#include <memory>

#include "nn/models/model.h"
#include "train/config/config.h"

HEED_BEGIN

/// The model that the config describes, freshly initialised. (Inline, for `heed gradcheck` builds it
/// in float64.)
inline std::unique_ptr<Model> build_model(const Config& config, const VocabularySizes& vocabulary) {
  return make_model(info_of(config.task).architecture, config.model, vocabulary, config.seed);
}
/// The same with weights yet to be written, which take no memory before.
std::unique_ptr<Model> build_unfilled(Config config, const VocabularySizes& vocabulary);
/// A model to train. Throws Error(io), before it takes the memory, where weights, gradients and
/// moments alone need more than the machine has.
std::unique_ptr<Model> build_to_train(const Config& config, const VocabularySizes& vocabulary);

/// Bytes that a model takes at least while it is trained, whatever its batches: no activations, and
/// gradients of one shard.
struct LeastMemory {
  double program = 0;  ///< code, libraries, what the BLAS keeps for itself
  double weights = 0, gradients = 0, moments = 0;
  double total() const { return program + weights + gradients + moments; }
};
LeastMemory least_memory(const Config& config, const Model& model);

/// Bytes of this machine, swap included, or what its container may take.
double machine_memory();

HEED_END
