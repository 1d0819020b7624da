#pragma once
#include <cmath>
#include <span>

#include "autograd/ops/basic.h"
#include "nn/parameters.h"

HEED_BEGIN

/// Looks up rows of a table by id and, if `scaled`, multiplies them by √d (Vaswani et al. 2017,
/// section 3.4).
struct Embedding {
  Tensor weight;  ///< [vocabulary, d]
  bool scaled = true;

  Embedding() = default;
  Embedding(std::int64_t vocabulary, std::int64_t d, bool scale, Init& init)
      : weight(init.table(vocabulary, d)), scaled(scale) {}

  /// n ids → [n, d]
  Tensor operator()(std::span<const std::int32_t> ids) const {
    return embedding(weight, ids,
                     scaled ? std::sqrt(static_cast<real>(weight.shape().cols())) : real(1));
  }
  Parameters parameters() const { return {{"weight", weight}}; }
};

HEED_END
