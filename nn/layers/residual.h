#pragma once
#include "nn/layers/norm.h"
#include "nn/pass.h"

HEED_BEGIN

/// A sublayer with its residual connection:
///   pre:   x + dropout(sublayer(norm(x)))      (Xiong et al. 2020)
///   post:  norm(x + dropout(sublayer(x)))      (Vaswani et al. 2017)
template <class Sublayer>
Tensor residual(NormPlace place, const Norm& norm, const Tensor& x, double dropout_rate, Pass& pass,
                Sublayer sublayer) {
  const auto p = static_cast<real>(pass.rate(dropout_rate));
  const bool pre = place == NormPlace::pre;
  const Tensor change = sublayer(pre ? norm(x) : x);
  const Tensor total = dropout_add(change, x, p, pass.next_key());
  return pre ? total : norm(total);
}

HEED_END
