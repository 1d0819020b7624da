#pragma once
/// How much matrix work a model does.
///
/// A product of m×k and k×n counts 2 m n k. Attention counts in full, masked or not, and so does
/// the output projection; looking up embeddings, norms and all else that is no product count
/// nothing. Backward multiplies twice where forward does once (for the input and for the weight),
/// so training takes three times forward's work. tests/bench/workloads.py counts the same way.
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/batches/batch.h"
#include "nn/options.h"
#include "train/config/config.h"

namespace heed {

inline constexpr double training_flops = 3;  ///< times those of a forward pass

namespace flops_detail {

/// A sum over sequences that lie end to end (n + 1 offsets, or none): rows, and rows of a times
/// rows of b.
inline double rows(std::span<const std::int32_t> offsets) {
  return offsets.empty() ? 0 : static_cast<double>(offsets.back() - offsets.front());
}
inline double pairs(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < a.size() && i + 1 < b.size(); ++i) {
    sum += static_cast<double>(a[i + 1] - a[i]) * static_cast<double>(b[i + 1] - b[i]);
  }
  return sum;
}

}  // namespace flops_detail

/// Matrix FLOPs of one forward pass with loss over sequences that lie end to end. `source_offsets`
/// and `target_offsets` say where each begins, as in a Batch.
inline double forward_flops(const ModelOptions& model, Architecture architecture,
                            std::int64_t target_vocabulary,
                            std::span<const std::int32_t> source_offsets,
                            std::span<const std::int32_t> target_offsets) {
  const auto d = static_cast<double>(model.d_model), ff = static_cast<double>(model.d_ff);
  const auto encoders = static_cast<double>(model.encoder_layers),
             decoders = static_cast<double>(model.decoder_layers);
  const bool encodes = has_encoder(architecture), decodes = has_decoder(architecture);
  const double source = flops_detail::rows(source_offsets),
               target = flops_detail::rows(target_offsets);
  const auto self_layer = [&](double rows,
                              double squares) {  // q, k, v, out; q kᵀ and p v; feed-forward
    return 8 * d * d * rows + 4 * d * squares + 4 * d * ff * rows;
  };
  double flops = 0;
  if (decodes)
    flops += decoders * self_layer(target, flops_detail::pairs(target_offsets, target_offsets));
  if (encodes)
    flops += encoders * self_layer(source, flops_detail::pairs(source_offsets, source_offsets));
  if (encodes && decodes) {
    // q and out for target rows, k and v for source rows
    flops += decoders * (4 * d * d * (target + source) +
                         4 * d * flops_detail::pairs(target_offsets, source_offsets));
  }
  return flops + 2 * d * static_cast<double>(target_vocabulary) * (decodes ? target : source);
}

/// What a row of each side costs, for cutting a batch into shards of about equal time: forward_flops
/// without attention's products, which grow with the length.
inline TokenCost token_cost(const Config& config, std::int64_t target_vocabulary) {
  const std::int32_t none[] = {0, 0}, one[] = {0, 1};
  const auto flops = [&](auto& source, auto& target) {
    return forward_flops(config.model, info_of(config.task).architecture, target_vocabulary, source,
                         target);
  };
  return {flops(one, none), flops(none, one)};
}

}  // namespace heed
