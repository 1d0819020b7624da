#pragma once
#include "autograd/ops/norm.h"
#include "nn/parameters.h"

HEED_BEGIN

/// Normalises each row: layer norm (Ba, Kiros and Hinton 2016) or RMS norm (Zhang and Sennrich
/// 2019).
struct Norm {
  NormKind kind;
  real eps;
  Tensor weight;  ///< gain [d]
  Tensor bias;    ///< [d]; layer norm only

  Norm(const ModelOptions& options, Init& init)
      : kind(options.norm_kind),
        eps(static_cast<real>(options.norm_eps)),
        weight(init.ones(options.d_model)),
        bias(kind == NormKind::layer ? init.zeros(options.d_model) : Tensor()) {}

  Tensor operator()(const Tensor& x) const {
    return kind == NormKind::layer ? layer_norm(x, weight, bias, eps) : rms_norm(x, weight, eps);
  }
  Parameters parameters() const {
    Parameters all{{"weight", weight}};
    if (bias.defined()) all.push_back({"bias", bias});
    return all;
  }
};

HEED_END
