#pragma once
#include "nn/context.h"
#include "nn/layers/linear.h"

HEED_BEGIN

/// linear2(dropout(f(linear1(x)))): [rows, d] → [rows, d_ff] → [rows, d]
struct FeedForward {
  Linear linear1, linear2;
  kernels::Map activation;
  double dropout_rate;

  FeedForward(const ModelOptions& options, Init& init);

  Tensor operator()(const Tensor& x, Pass& pass) const {
    return linear2(affine_map(activation, x, linear1.weight, linear1.bias,
                              static_cast<real>(pass.rate(dropout_rate)), pass.next_key()));
  }
  Parameters parameters() const;
};

HEED_END
