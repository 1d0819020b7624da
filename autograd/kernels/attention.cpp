#include "autograd/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(i, lanes) over [0, n): full vectors, then one partial one.
template <class D, class Body>
HWY_ATTR inline void sweep(D d, std::int64_t n, Body body) {
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(i, static_cast<std::size_t>(width));
  if (i < n) body(i, static_cast<std::size_t>(n - i));
}

template <class D>
HWY_ATTR inline hn::Vec<D> load(D d, const real* p, std::size_t n) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : hn::MaskedLoad(hn::FirstN(d, n), d, p);
}
template <class D>
HWY_ATTR inline void store(D d, hn::Vec<D> v, real* p, std::size_t n) {
  if (n == hn::Lanes(d)) {
    hn::StoreU(v, d, p);
  } else {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  }
}

HWY_ATTR void SoftmaxAgain(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                           const real* lse, std::int64_t stride) {
  const hn::ScalableTag<real> d;
  for (std::int64_t r = 0; r < rows; ++r, scores += cols) {
    const std::int64_t n = visible.count(r, cols);
    const real row_lse = lse[r * stride];
    if (row_lse == -std::numeric_limits<real>::infinity()) {
      std::fill_n(scores, cols, real(0));
      continue;
    }
    const auto shift = hn::Set(d, row_lse);
    sweep(d, n, [&](std::int64_t i, std::size_t lanes) HWY_ATTR {
      const auto x = hn::Sub(load(d, scores + i, lanes), shift);
      // Highway's Exp gives 0 for NaN; a NaN must be seen.
      store(d, hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x)), scores + i, lanes);
    });
    std::fill(scores + n, scores + cols, real(0));
  }
}

HWY_ATTR void SoftmaxGrad(const real* weights, const real* dweights, real* dscores,
                          std::int64_t rows, std::int64_t cols, Visible visible,
                          const real* delta) {
  const hn::ScalableTag<real> d;
  for (std::int64_t r = 0; r < rows; ++r, weights += cols, dweights += cols, dscores += cols) {
    const std::int64_t n = visible.count(r, cols);
    const auto shift = hn::Set(d, delta[r]);
    sweep(d, n, [&](std::int64_t i, std::size_t lanes) HWY_ATTR {
      const auto g = hn::Sub(load(d, dweights + i, lanes), shift);
      store(d, hn::Mul(load(d, weights + i, lanes), g), dscores + i, lanes);
    });
    std::fill(dscores + n, dscores + cols, real(0));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(SoftmaxAgain);
HWY_EXPORT(SoftmaxGrad);

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
  HWY_DYNAMIC_DISPATCH(SoftmaxAgain)(scores, rows, cols, visible, lse, stride);
}

void attention_softmax_grad(const real* weights, const real* dweights, real* dscores,
                            std::int64_t rows, std::int64_t cols, Visible visible,
                            const real* delta) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGrad)(weights, dweights, dscores, rows, cols, visible, delta);
}

namespace plain {

void attention_softmax_again(real* scores, std::int64_t rows, std::int64_t cols, Visible visible,
                             const real* lse, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool none = lse[r * stride] == -std::numeric_limits<real>::infinity();
    for (std::int64_t c = 0; c < cols; ++c) {
      real& s = scores[r * cols + c];
      s = none || c >= visible.count(r, cols) ? real(0) : std::exp(s - lse[r * stride]);
    }
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
