#include "autograd/ops/basic.h"

#include <utility>

#include "autograd/kernels/rows.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y_i = exp(z_i) / Σ_j exp(z_j),  z = x + mask          x, y: [rows, n]
/// dx  = y ⊙ (dy − ⟨dy, y⟩)                              because ∂y/∂z = diag(y) − y yᵀ
/// An entry with z_i = −inf has y_i = 0; a row of only such entries has y = 0. Both have dx = 0.
struct Softmax {
  Array mask;  // used by forward only
  Array y;
  Array forward(const Array& x) {
    require_defined("softmax", x);
    const Array z = add_mask("softmax", x, std::exchange(mask, Array()));
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

}  // namespace

Tensor softmax(const Tensor& x, const Array& mask) { return apply(Softmax{mask, {}}, x); }

HEED_END
