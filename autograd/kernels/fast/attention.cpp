#include "autograd/kernels/fast/attention.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/fast/simd/targets.h"
#include "autograd/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/attention.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride) {
  for_each_row(scores, rows, cols, visible,
               [=](std::int64_t r, real* read, std::int64_t n) HWY_ATTR {
                 const real row_lse = lse[r * stride];
                 if (row_lse == -std::numeric_limits<real>::infinity()) {
                   std::fill_n(read, n, real(0));
                   return;
                 }
                 const Vector shift = set(row_lse);
                 each(n, [=](std::int64_t i, auto io) HWY_ATTR {
                   const Vector x = hn::Sub(io.load(read + i), shift);
                   // Highway's Exp returns 0 for NaN, which would hide the NaN.
                   io.store(hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag(), x)), read + i);
                 });
               });
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  for (std::int64_t r = 0; r < rows; ++r, weights += cols, dweights += cols, dscores += cols) {
    const KeyRange reads = visible.columns(r, cols);
    const std::int64_t first = reads.begin;
    std::fill_n(dscores, first, real(0));
    const Vector shift = set(delta[r]);
    each(reads.end - first, [=](std::int64_t i, auto io) HWY_ATTR {
      const Vector g = hn::Sub(io.load(dweights + first + i), shift);
      io.store(hn::Mul(io.load(weights + first + i), g), dscores + first + i);
    });
    std::fill(dscores + reads.end, dscores + cols, real(0));
  }
}

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
  for_each_row(scores, rows, cols, visible, [=](std::int64_t r, real* read, std::int64_t n) {
    lse[r * stride] = softmax_row(read, read, n);
  });
}

void attention_add_to_lse(const real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                          real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, scores += cols) {
    const KeyRange reads = visible.columns(r, cols);
    const double a = lse[r * stride];
    const double b = log_sum_exp_row(scores + reads.begin, reads.end - reads.begin);
    const double high = std::max(a, b), low = std::min(a, b);
    double sum = high;
    if (std::isnan(a) || std::isnan(b))
      sum = a + b;
    else if (std::isfinite(high) && std::isfinite(low))
      sum += std::log1p(std::exp(low - high));
    lse[r * stride] = static_cast<real>(sum);
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
    const KeyRange reads = visible.columns(r, cols);
    real* const row = scores + r * cols;
    for (std::int64_t c = 0; c < cols; ++c) {
      const bool read = !none && reads.begin <= c && c < reads.end;
      row[c] = read ? std::exp(row[c] - lse[r * stride]) : real(0);
    }
  }
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyRange reads = visible.columns(r, cols);
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t i = r * cols + c;
      const bool read = reads.begin <= c && c < reads.end;
      dscores[i] = read ? weights[i] * (dweights[i] - delta[r]) : real(0);
    }
  }
}

}  // namespace plain
}  // namespace kernels
HEED_END
#endif
