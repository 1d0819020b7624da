#pragma once
/// Builds the model that a config describes.
#include <memory>
#include <utility>

#include "nn/layers/mixer_check.h"
#include "nn/models/model.h"
#include "train/config/config.h"

HEED_BEGIN

/// The model of the config, initialised. (Inline, because `heed gradcheck` builds it in float64.)
inline std::unique_ptr<Model> build_model(const Config& config, const VocabularySizes& vocabulary) {
  return make_model(info_of(config.task).architecture, config.model, vocabulary, config.seed);
}
/// The model of the config. Its matrices are uninitialised and occupy no physical memory until they
/// are written. Throws Error(io) if they cannot be allocated.
std::unique_ptr<Model> build_uninitialised(Config config, const VocabularySizes& vocabulary);
/// Checks a plugin's mixer in each of its roles in this model (nn/layers/mixer_check.h). Throws
/// Error(failed) if a check fails. The tests check the built-in mixers. (Inline, because `heed
/// gradcheck` runs the check in float64.)
inline void check_mixers(const Config& config) {
  const Architecture architecture = info_of(config.task).architecture;
  if (has_encoder(architecture)) check_registered_mixer(config.model, AttentionScope::all);
  if (has_decoder(architecture)) check_registered_mixer(config.model, AttentionScope::past);
}
/// A model to train; calls check_mixers. Throws Error(io), before any matrix is initialised, if
/// weights, gradients and moments alone need more memory than the machine has.
std::unique_ptr<Model> build_to_train(const Config& config, const VocabularySizes& vocabulary);

/// The minimum memory for training a model, in bytes, whatever the batch size: without activations
/// and with the gradients of one shard. `moments` includes the moving average of the weights
/// (train.ema).
struct MinMemory {
  double program = 0;  ///< code, libraries and the buffers of the BLAS
  double weights = 0, gradients = 0, moments = 0;
  double total() const { return program + weights + gradients + moments; }
};
MinMemory min_memory(const Config& config, const Model& model);

/// The memory of this machine or, if smaller, the limit of its container, plus swap, in bytes.
double machine_memory();

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use build_uninitialised")]] inline std::unique_ptr<Model> build_unfilled(
    Config config, const VocabularySizes& vocabulary) {
  return build_uninitialised(std::move(config), vocabulary);
}

using LeastMemory [[deprecated("use MinMemory")]] = MinMemory;
[[deprecated("use min_memory")]] inline MinMemory least_memory(const Config& config,
                                                               const Model& model) {
  return min_memory(config, model);
}

HEED_END
