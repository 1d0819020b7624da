#include "autograd/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "autograd/kernels/simd/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, scores += cols) {
    const std::int64_t n = visible.count(r, cols);
    const real row_lse = lse[r * stride];
    if (row_lse == -std::numeric_limits<real>::infinity()) {
      std::fill_n(scores, cols, real(0));
      continue;
    }
    const Vector shift = set(row_lse);
    each(n, [=](std::int64_t i, auto io) HWY_ATTR {
      const Vector x = hn::Sub(io.load(scores + i), shift);
      // Highway's Exp gives 0 for NaN; a NaN must be seen.
      io.store(hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag(), x)), scores + i);
    });
    std::fill(scores + n, scores + cols, real(0));
  }
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  for (std::int64_t r = 0; r < rows; ++r, weights += cols, dweights += cols, dscores += cols) {
    const std::int64_t n = visible.count(r, cols);
    const Vector shift = set(delta[r]);
    each(n, [=](std::int64_t i, auto io) HWY_ATTR {
      const Vector g = hn::Sub(io.load(dweights + i), shift);
      io.store(hn::Mul(io.load(weights + i), g), dscores + i);
    });
    std::fill(dscores + n, dscores + cols, real(0));
  }
}

#else
using plain::attention_softmax_again;
using plain::attention_softmax_grad;
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(attention_softmax_again);
HWY_EXPORT(attention_softmax_grad);

void attention_softmax(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                       real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, scores += cols) {
    const std::int64_t n = visible.count(r, cols);
    lse[r * stride] = softmax_row(scores, scores, n);
    std::fill(scores + n, scores + cols, real(0));
  }
}

void attention_add_to_lse(const real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                          real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, scores += cols) {
    const double a = lse[r * stride], b = log_sum_exp_row(scores, visible.count(r, cols));
    const double high = a < b ? b : a, low = a < b ? a : b;  // a NaN stays in one of them
    const bool alone = low == -std::numeric_limits<double>::infinity() || std::isinf(high);
    lse[r * stride] = static_cast<real>(alone ? high : high + std::log1p(std::exp(low - high)));
  }
}

void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(attention_softmax_again)(scores, rows, cols, visible, lse, stride);
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  HWY_DYNAMIC_DISPATCH(attention_softmax_grad)
  (weights, dweights, dscores, rows, cols, visible, delta);
}

namespace plain {

void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool none = lse[r * stride] == -std::numeric_limits<real>::infinity();
    real* const row = scores + r * cols;
    for (std::int64_t c = 0; c < cols; ++c)
      row[c] = none || c >= visible.count(r, cols) ? real(0) : std::exp(row[c] - lse[r * stride]);
  }
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t i = r * cols + c;
      dscores[i] = c >= visible.count(r, cols) ? real(0) : weights[i] * (dweights[i] - delta[r]);
    }
  }
}

}  // namespace plain
}  // namespace kernels
HEED_END
#endif
