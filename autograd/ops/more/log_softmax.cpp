#include "autograd/ops/more/log_softmax.h"

#include <utility>

#include "autograd/kernels/fast/rows.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y_i = z_i − log Σ_j exp(z_j),  z = x + mask           x, y: [rows, n]
/// dx  = dy − exp(y) Σ_j dy_j                            because dy/dx = I − 1 exp(y)ᵀ
/// An entry with z_i = −inf remains −inf and is a constant without a gradient.
struct LogSoftmax {
  Array mask;  // used by forward only
  Array y;
  Array forward(const Array& x) {
    require_defined("log_softmax", x);
    const Array z = add_mask("log_softmax", x, std::exchange(mask, Array()));
    y = Array(x.shape());
    for (std::int64_t r = 0; y.size() > 0 && r < y.rows(); ++r)
      kernels::log_softmax_row(z.row(r), y.row(r), y.cols());
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    for (std::int64_t r = 0; g.size() > 0 && r < g.rows(); ++r) {
      kernels::log_softmax_row_grad(y.row(r), dy.row(r), g.row(r), g.cols());
    }
    dx.add(std::move(g));
  }
};

}  // namespace

Tensor log_softmax(const Tensor& x, const Array& mask) { return apply(LogSoftmax{mask, {}}, x); }

HEED_END
