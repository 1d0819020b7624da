#pragma once
#include <cstdint>
#include <span>

#include "autograd/real.h"

HEED_BEGIN
namespace kernels {

/// Attention of one query of all heads, q: [d], to rows[t] = keys [d] then values [d]:
///   out_h = Σ_t softmax_t(⟨q_h, k_t,h⟩ / √(d/heads)) v_t,h.        out: [d]; zeros where there are
///   no rows.
void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out);

namespace plain {
void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out);
}
}  // namespace kernels
HEED_END
