#pragma once
#include <vector>

#include "nn/layers/mixer.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// A recurrent layer in place of self-attention, with the parameters and formulas of PyTorch's
/// nn.LSTM and nn.GRU (autograd/ops/more/sequences/recurrent.cpp):
/// - lstm: Hochreiter and Schmidhuber 1997, with forget gates
/// - gru: Cho et al. 2014
/// A causal mixer runs forward, with width d. In an encoder, it is bidirectional with width d/2 per
/// direction: columns [0, d/2) contain the output of the forward direction, [d/2, d) that of the
/// backward direction (Schuster and Paliwal 1997). The time of a decoding step is constant.
struct Recurrent : Mixer {
  /// The weights of one direction, of width h. lstm has 4 gates, gru 3.
  struct Direction {
    Tensor weight_ih;         ///< [gates h, d]
    Tensor weight_hh;         ///< [gates h, h]
    Tensor bias_ih, bias_hh;  ///< [gates h]
  };
  MixerKind kind;
  std::vector<Direction> directions;  ///< forward and, unless causal, backward

  Recurrent(const ModelOptions& options, AttentionScope scope, Init& init);
  Tensor operator()(const Tensor& x, const Context& context) const override;
  Tensor step(const Tensor& x, const Context& context) const override;
  Parameters parameters() const override;
};

HEED_END
