#include "autograd/ops/more/dropout.h"

#include "autograd/kernels/fast/dropout.h"
#include "autograd/ops/basic.h"
#include "autograd/ops/more/check.h"

HEED_BEGIN

namespace {

/// y = m ⊙ x / (1 − p),  dx = m ⊙ dy / (1 − p)                         x, y: any shape
///
/// m_i is 1 with probability 1 − p, else 0. It depends only on p, the key and i, so backward
/// recomputes it. The division by 1 − p during training makes E[y] = x.
/// Source: Srivastava et al., "Dropout", JMLR 2014.
struct Dropout {
  real p = 0;
  RandomKey key;
  Array forward(const Array& x) const {
    Array y(x.shape());
    kernels::dropout(key, 0, p, x.data(), y.data(), x.size());
    return y;
  }
  void backward(const Array& dy, Grad dx) const { dx.add(forward(dy)); }
};

/// y = r + m ⊙ x / (1 − p)              x, r, y: of equal shape; m as above
/// dx = m ⊙ dy / (1 − p),  dr = dy
struct DropoutAdd {
  real p = 0;
  RandomKey key;
  Array forward(const Array& x, const Array& r) const {
    Array y(x.shape());
    kernels::dropout_add(key, 0, p, x.data(), r.data(), y.data(), x.size());
    return y;
  }
  void backward(const Array& dy, Grad dx, Grad dr) const {
    if (dx) dx.add(Dropout{p, key}.forward(dy));
    if (dr) dr.add(dy);
  }
};

}  // namespace

Tensor dropout(const Tensor& x, real p, const RandomKey& key) {
  require_defined("dropout", x.value());
  require_probability("dropout", p);
  return p == 0 ? x : apply(Dropout{p, key}, x);
}

Tensor dropout_add(const Tensor& x, const Tensor& residual, real p, const RandomKey& key) {
  require_defined("dropout_add", x.value());
  require_defined("dropout_add", residual.value());
  require_probability("dropout_add", p);
  if (x.shape() != residual.shape()) {
    fail("[dropout_add] expected a residual of x's shape {}, got {}", x.shape(), residual.shape());
  }
  return p == 0 ? add(residual, x) : apply(DropoutAdd{p, key}, x, residual);
}

HEED_END
