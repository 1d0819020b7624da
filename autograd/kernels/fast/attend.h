#pragma once
/// The two products of a decoding step: one query row, in all heads, with cached rows at any
/// addresses. rows[t] points to the keys [key_heads · size] of position t, followed by its values
/// [key_heads · size]. k_t,h and v_t,h belong to the key head that query head h reads.
#include <cstdint>

#include "autograd/kernels/fast/attention.h"

HEED_BEGIN
namespace kernels {

/// scores[h, t] = scale ⟨q_h, k_t,h⟩.     q: [heads · size], scores: [heads, n]
void attend_scores(const real* q, const real* const* rows, std::int64_t n, HeadLayout layout,
                   real scale, real* scores);
/// out_h = Σ_t weights[h, t] v_t,h.         weights: [heads, n], out: [heads · size]
void attend_mix(const real* weights, const real* const* rows, std::int64_t n, HeadLayout layout,
                real* out);

/// Reference implementations: the formulas in double.
namespace plain {

inline void attend_scores(const real* q, const real* const* rows, std::int64_t n, HeadLayout layout,
                          real scale, real* scores) {
  const auto [heads, key_heads, size] = layout;
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t key_head = layout.key_head(h);
    for (std::int64_t t = 0; t < n; ++t) {
      double sum = 0;
      for (std::int64_t j = 0; j < size; ++j)
        sum += double{q[h * size + j]} * double{rows[t][key_head * size + j]};
      scores[h * n + t] = static_cast<real>(double{scale} * sum);
    }
  }
}

inline void attend_mix(const real* weights, const real* const* rows, std::int64_t n,
                       HeadLayout layout, real* out) {
  const auto [heads, key_heads, size] = layout;
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::int64_t key_head = layout.key_head(h);
    for (std::int64_t j = 0; j < size; ++j) {
      double sum = 0;
      for (std::int64_t t = 0; t < n; ++t)
        sum += double{weights[h * n + t]} * double{rows[t][(key_heads + key_head) * size + j]};
      out[h * size + j] = static_cast<real>(sum);
    }
  }
}

}  // namespace plain
}  // namespace kernels
HEED_END
