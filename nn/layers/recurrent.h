#pragma once
#include <vector>

#include "nn/layers/mixer.h"

HEED_BEGIN

/// A recurrent layer in place of self-attention, with PyTorch's parameters (nn.LSTM, nn.GRU) and formulas
/// (autograd/ops/sequences/recurrent.cpp):
/// - lstm: Hochreiter and Schmidhuber 1997, with forget gates
/// - gru: Cho et al. 2014
/// A causal mixer runs forward, with width d. In an encoder, it is bidirectional with width d/2 each way:
/// columns [0, d/2) run forward, [d/2, d) backward (Schuster and Paliwal 1997). Every step of decoding
/// takes the same time.
struct Recurrent : Mixer {
  /// The weights of one direction of width h: 4 gates for lstm, 3 for gru.
  struct Direction {
    Tensor weight_ih;         ///< [gates h, d]
    Tensor weight_hh;         ///< [gates h, h]
    Tensor bias_ih, bias_hh;  ///< [gates h]
  };
  MixerKind kind;
  std::vector<Direction> directions;  ///< forward, then backward

  Recurrent(const ModelOptions& options, AttentionScope scope, Init& init);
  Tensor operator()(const Tensor& x, const Context& context) const override;
  Tensor step(const Tensor& x, const Context& context) const override;
  Parameters parameters() const override;
};

HEED_END
