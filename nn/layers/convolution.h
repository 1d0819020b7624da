#pragma once
#include "nn/layers/mixer.h"
#include "nn/linear.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// A gated convolution along the sequence (Dauphin et al. 2017, "Language Modeling with Gated
/// Convolutional Networks"). Its window has `width` rows, centred on a row (or, if `width` is even,
/// with one more row before it than after it) or, if causal, ending at it. Rows outside the
/// sequence count as zeros.
///   y = (x * W + b) ⊙ σ(x * V + c)
struct GatedConvolution : Mixer {
  /// [2 d, width d]: rows of W, then of V; column j d + k: channel k of row j of the window.
  Linear conv;
  std::int64_t d, width;
  std::int64_t before;  ///< number of rows in the window before the current row

  GatedConvolution(const ModelOptions& options, AttentionScope scope, Init& init);
  Tensor operator()(const Tensor& x, const Context& context) const override;
  Tensor step(const Tensor& x, const Context& context) const override;
  Parameters parameters() const override;

 private:
  Tensor gated(const Tensor& windows) const;  ///< [rows, width d] → [rows, d]
};

HEED_END
