#pragma once
#include "autograd/ops/basic.h"
#include "nn/parameters.h"

HEED_BEGIN

/// y = x Wᵀ + b                x: [..., in] → [..., out]
struct Linear {
  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or undefined

  Linear() = default;
  Linear(std::int64_t in, std::int64_t out, Init& init, bool with_bias = true)
      : weight(init.matrix(out, in)), bias(with_bias ? init.zeros(out) : Tensor()) {}
  /// A layer with a shared weight and no bias.
  explicit Linear(Tensor shared) : weight(std::move(shared)) {}

  Tensor operator()(const Tensor& x) const { return affine(x, weight, bias); }
  Parameters parameters() const {
    Parameters all{{"weight", weight}};
    if (bias.defined()) all.push_back({"bias", bias});
    return all;
  }
};

HEED_END
