#pragma once
/// Pruning: sets attention heads and individual weights of a trained model to zero.
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/base/team.h"
#include "data/batches/dataset.h"
#include "nn/models/model.h"
#include "train/config/config.h"

HEED_BEGIN

struct HeadImportance {
  std::string attention;  ///< "encoder.layers.0.self_attn"
  std::int64_t head = 0;  ///< from 0
  double importance = 0;
  bool removed = false;  ///< true: its columns of out_proj.weight are already zero
};

/// The importance of each head of each attention layer, in the order of the model:
///   I_h = mean over sequences of |∂L/∂ξ_h| at ξ_h = 1,
/// divided by the Euclidean norm of I_h over all heads of the layer. The gate ξ_h multiplies the
/// output of the head, or equivalently its columns W_h of out_proj.weight, so
///   ∂L/∂ξ_h = ⟨W_h, ∂L/∂W_h⟩.
/// L is the loss of one sequence, without dropout or augmentation. The mean is over up to
/// `max_sequences` evenly spaced sequences. Throws Error(non_finite) if a gradient is not finite.
/// Source: Michel, Levy and Neubig, "Are sixteen heads really better than one?", 2019, section 4.1.
std::vector<HeadImportance> importance_of_heads(const Model& model, const Config& config,
                                                const Dataset& data, std::int64_t max_sequences,
                                                Team& team);

/// Sets the head's columns of out_proj.weight to zero, so that the outputs no longer depend on the
/// head.
void remove_head(Model& model, const Config& config, const HeadImportance& head);

/// Sets the given share of all matrix entries to zero, those with the smallest magnitudes first;
/// ties are resolved in the order of the model. Biases and gains are not changed. Returns the
/// number of entries that are zero. Throws Error(non_finite) if an entry is NaN.
/// Source: See, Luong and Manning, "Compression of neural machine translation models via pruning",
/// 2016 (class-blind).
std::int64_t remove_weights(Model& model, double share);

HEED_END
