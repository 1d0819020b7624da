#pragma once
#include "nn/layers/linear.h"
#include "nn/layers/mixer.h"

HEED_BEGIN

/// A gated convolution along the sequence (Dauphin et al. 2017, "Language Modeling with Gated Convolutional
/// Networks"), with `width` rows of x around a row, or up to it where rows see the past:
///   y = (x * W + b) ⊙ σ(x * V + c)
/// Outside of its sequence a row reads zeros.
struct GatedConvolution : Mixer {
  Linear
      conv;  ///< [2 d, width d]: rows for W, then V; columns j d + c: channel c of the window's row j
  std::int64_t d, width;
  std::int64_t before;  ///< rows of the window that precede its own row

  GatedConvolution(const ModelOptions& options, AttentionScope scope, Init& init);
  Tensor operator()(const Tensor& x, const Context& context) const override;
  Tensor step(const Tensor& x, const Context& context) const override;
  Parameters parameters() const override;

 private:
  Tensor gated(const Tensor& windows) const;  ///< [rows, width d] → [rows, d]
};

HEED_END
