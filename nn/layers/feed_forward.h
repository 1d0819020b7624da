#pragma once
#include "nn/context.h"
#include "nn/layers/activations.h"
#include "nn/linear.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// linear2(dropout(f(linear1(x)))): [rows, d] → [rows, d_ff] → [rows, d]. With a gated activation
/// (swiglu, geglu), linear1 returns [rows, 2 d_ff] and f reduces it to [rows, d_ff].
struct FeedForward {
  Linear linear1, linear2;
  Activation activation;
  ActivationFunction registered;  ///< activation of a plugin; nullptr if built in
  double dropout_rate;

  FeedForward(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, Pass& pass) const { return linear2(hidden(x, pass)); }
  Parameters parameters() const;

 private:
  /// dropout(f(linear1(x))), fused into one op for a built-in activation without a gate.
  Tensor hidden(const Tensor& x, Pass& pass) const;
};

HEED_END
