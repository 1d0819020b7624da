#pragma once
/// The model FLOPs of a Transformer, computed by a formula that is independent of the counting
/// code. tests/bench/workloads.py contains the same formula for sequences of equal length.
#include <cstdint>
#include <span>
#include <vector>

#include "nn/context.h"
#include "nn/options.h"

namespace heed::test {

using OffsetList = std::vector<std::int32_t>;

/// The sum of the sequence lengths.
inline double rows(const OffsetList& a) { return a.empty() ? 0 : static_cast<double>(a.back()); }
/// The sum over i of the product of the lengths of sequence i in `a` and in `b`.
inline double pairs(const OffsetList& a, const OffsetList& b) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < a.size() && i + 1 < b.size(); ++i)
    sum += static_cast<double>(a[i + 1] - a[i]) * static_cast<double>(b[i + 1] - b[i]);
  return sum;
}

/// The FLOPs of a forward pass including the logits. The model is a language model if `source` is
/// empty, a tagger if `target` is empty, and otherwise an encoder with a decoder. The backward pass
/// needs twice as many.
inline double forward_flops(const ModelOptions& model, double vocabulary, const OffsetList& source,
                            const OffsetList& target) {
  const auto d = static_cast<double>(model.d_model), ff = static_cast<double>(model.d_ff);
  const auto encoders = static_cast<double>(model.encoder_layers),
             decoders = static_cast<double>(model.decoder_layers);
  const auto layer = [&](const OffsetList& x) {  // terms: q, k, v, out; q kᵀ, p v; feed-forward
    return 8 * d * d * rows(x) + 4 * d * pairs(x, x) + 4 * d * ff * rows(x);
  };
  double flops = 2 * d * vocabulary * rows(target.empty() ? source : target);
  if (!target.empty()) flops += decoders * layer(target);
  if (!source.empty()) flops += encoders * layer(source);
  if (!source.empty() && !target.empty()) {
    // q and out for the target rows, k and v for the source rows
    flops += decoders * (4 * d * d * (rows(target) + rows(source)) + 4 * d * pairs(target, source));
  }
  return flops;
}

}  // namespace heed::test
