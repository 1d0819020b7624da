#pragma once
#include <cmath>
#include <cstdint>
#include <span>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

/// Attention of one query of all heads, q: [d], to rows[t] = keys [d] then values [d]:
///   out_h = Σ_t softmax_t(⟨q_h, k_t,h⟩ / √(d/heads)) v_t,h.        out: [d]; zeros where there are
///   no rows.
void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out);

/// The two products in it, as the formula has them and in double.
namespace plain {

inline void attend_scores(const real* q, const real* const* rows, std::int64_t n, std::int64_t size,
                          std::int64_t heads, real* scores) {
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < n; ++t) {
      double sum = 0;
      for (std::int64_t j = h * size; j < (h + 1) * size; ++j)
        sum += double{q[j]} * double{rows[t][j]};
      scores[h * n + t] = static_cast<real>(sum / std::sqrt(static_cast<double>(size)));
    }
  }
}

inline void attend_mix(const real* weights, const real* const* rows, std::int64_t n,
                       std::int64_t size, std::int64_t heads, real* out) {
  const std::int64_t d = heads * size;
  for (std::int64_t c = 0; c < d; ++c) {
    double sum = 0;
    for (std::int64_t t = 0; t < n; ++t)
      sum += double{weights[c / size * n + t]} * double{rows[t][d + c]};
    out[c] = static_cast<real>(sum);
  }
}

}  // namespace plain
}  // namespace kernels
HEED_END
