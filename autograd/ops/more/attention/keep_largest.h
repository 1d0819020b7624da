#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// Sparse attention by score: of the scores of the keys that a query reads, the k largest are kept;
/// the others become −inf, so that their keys have weight 0 and no gradient. Of equal scores, those
/// of earlier keys are kept. A row with a NaN is unchanged.
/// Source: Zhao et al., "Explicit Sparse Transformer", 2019, section 3.
inline void keep_largest(std::int64_t k, real* scores, std::int64_t rows, std::int64_t cols,
                         kernels::Visible visible) {
  std::vector<real, BlockAllocator<real>> sorted;
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyRange reads = visible.columns(r, cols);
    real *const begin = scores + r * cols + reads.begin, *const end = scores + r * cols + reads.end;
    if (end - begin <= k || std::any_of(begin, end, [](real s) { return std::isnan(s); })) continue;
    sorted.assign(begin, end);
    std::nth_element(sorted.begin(), sorted.begin() + k - 1, sorted.end(), std::greater<>());
    const real least = sorted[k - 1];
    std::int64_t equal = k - std::count_if(begin, end, [=](real s) { return s > least; });
    for (real* s = begin; s != end; ++s) {
      const bool kept = *s > least || (*s == least && equal-- > 0);
      if (!kept) *s = -std::numeric_limits<real>::infinity();
    }
  }
}

HEED_END
