#pragma once
#include "autograd/ops.h"
#include "nn/parameters.h"

HEED_BEGIN

/// Normalises each row: layer norm (Ba, Kiros and Hinton 2016) or RMS norm (Zhang and Sennrich
/// 2019).
struct Norm {
  NormKind kind = NormKind::layer;
  real eps = real(1e-5);
  Tensor weight;  ///< gain [d]
  Tensor bias;    ///< [d]; layer norm only

  Norm() = default;
  Norm(std::int64_t d, NormKind norm_kind, double epsilon, Init& init)
      : kind(norm_kind),
        eps(static_cast<real>(epsilon)),
        weight(init.ones(d)),
        bias(norm_kind == NormKind::layer ? init.zeros(d) : Tensor()) {}

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
