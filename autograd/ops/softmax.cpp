#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops.h"
#include "autograd/ops/broadcast.h"
#include "autograd/ops/check.h"

HEED_BEGIN

namespace {

constexpr real minus_infinity = -std::numeric_limits<real>::infinity();

/// x + mask, or x itself where there is no mask.
Array masked(const char* op, const Array& x, const Array& mask) {
  if (!mask.defined()) return x;
  if (broadcast_shape(op, x.shape(), mask.shape()) != x.shape()) {
    fail("[{}] expected a mask that broadcasts to {}, got {}", op, x.shape(), mask.shape());
  }
  return zip(op, kernels::add, std::plus<real>(), x, mask);
}

/// y_i = exp(z_i) / Σ_j exp(z_j),  z = x + mask          x, y: [rows, n]
/// dx  = y ⊙ (dy − ⟨dy, y⟩)                              since dy/dx = diag(y) − y yᵀ
/// An entry with z_i = −inf has y_i = 0; a row of nothing else has y = 0, and both have dx = 0.
struct Softmax {
  Array mask;  // for forward only
  Array y;
  Array forward(const Array& x) {
    require_defined("softmax", x);
    const Array z = masked("softmax", x, std::exchange(mask, Array()));
    y = Array(x.shape());
    for (std::int64_t r = 0; y.size() > 0 && r < y.rows(); ++r)
      kernels::softmax_row(z.row(r), y.row(r), y.cols());
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    for (std::int64_t r = 0; g.size() > 0 && r < g.rows(); ++r) {
      kernels::softmax_row_grad(y.row(r), dy.row(r), g.row(r), g.cols());
    }
    dx.add(std::move(g));
  }
};

/// y_i = z_i − log Σ_j exp(z_j),  z = x + mask           x, y: [rows, n]
/// dx  = dy − exp(y) Σ_j dy_j                            since dy/dx = 1 − 1 exp(y)ᵀ
/// An entry with z_i = −inf stays −inf and is a constant: no gradient goes through it or to it.
struct LogSoftmax {
  Array mask;  // for forward only
  Array y;
  Array forward(const Array& x) {
    require_defined("log_softmax", x);
    const Array z = masked("log_softmax", x, std::exchange(mask, Array()));
    y = Array(x.shape());
    const std::int64_t n = y.cols();
    for (std::int64_t r = 0; y.size() > 0 && r < y.rows(); ++r) {
      const real log_sum = kernels::log_sum_exp_row(z.row(r), n);
      if (log_sum == minus_infinity) {  // −inf − (−inf) would be NaN
        std::fill_n(y.row(r), n, minus_infinity);
      } else {
        for (std::int64_t i = 0; i < n; ++i) y.row(r)[i] = z.row(r)[i] - log_sum;
      }
    }
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    const std::int64_t n = g.cols();
    for (std::int64_t r = 0; g.size() > 0 && r < g.rows(); ++r) {
      const real *y_r = y.row(r), *dy_r = dy.row(r);
      real* g_r = g.row(r);
      kernels::map(kernels::Map::exp, y_r, g_r, n);
      real total = 0;
      for (std::int64_t i = 0; i < n; ++i) total += y_r[i] == minus_infinity ? 0 : dy_r[i];
      for (std::int64_t i = 0; i < n; ++i)
        g_r[i] = y_r[i] == minus_infinity ? 0 : dy_r[i] - g_r[i] * total;
    }
    dx.add(std::move(g));
  }
};

}  // namespace

Tensor softmax(const Tensor& x, const Array& mask) { return apply(Softmax{mask, {}}, x); }
Tensor log_softmax(const Tensor& x, const Array& mask) { return apply(LogSoftmax{mask, {}}, x); }

HEED_END
