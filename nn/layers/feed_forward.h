#pragma once
#include "nn/layers/linear.h"
#include "nn/pass.h"

HEED_BEGIN

kernels::Map map_of(Activation activation);

/// linear2(dropout(f(linear1(x)))): [tokens, d] → [tokens, d_ff] → [tokens, d]
struct FeedForward {
  Linear linear1, linear2;
  Activation activation = Activation::relu;
  double dropout_rate = 0;

  FeedForward() = default;
  FeedForward(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, Pass& pass) const;
  Parameters parameters() const;
};

HEED_END
