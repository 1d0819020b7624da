#include "autograd/ops/basic.h"

#include <functional>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

// The two inputs broadcast: a: [A], b: [B], y: [Y]. If an input is repeated along an axis, its
// gradient is the sum of the gradients of its copies. sum_A denotes that sum, from [Y] to [A].

HEED_BEGIN

namespace {

Array times(const Array& a, const Array& b) {
  return zip("mul", kernels::mul, std::multiplies<real>(), a, b);
}

Array scaled(real factor, const Array& x) {
  Array y(x.shape());
  kernels::scale(factor, x.data(), y.data(), x.size());
  return y;
}

/// y = a + b
/// da = sum_A dy,  db = sum_B dy
struct Add {
  Array forward(const Array& a, const Array& b) {
    require_defined("add", a);
    require_defined("add", b);
    return zip("add", kernels::add, std::plus<real>(), a, b);
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    if (da) da.add(sum_to(dy, da.shape()));
    if (db) db.add(sum_to(dy, db.shape()));
  }
};

/// y = a − b
/// da = sum_A dy,  db = −sum_B dy
struct Sub {
  Array forward(const Array& a, const Array& b) {
    require_defined("sub", a);
    require_defined("sub", b);
    return zip("sub", kernels::sub, std::minus<real>(), a, b);
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    if (da) da.add(sum_to(dy, da.shape()));
    if (db) db.add(scaled(-1, sum_to(dy, db.shape())));
  }
};

/// y = a ⊙ b
/// da = sum_A (dy ⊙ b),  db = sum_B (dy ⊙ a)
struct Mul {
  Array a, b;
  Array forward(const Array& a_in, const Array& b_in) {
    require_defined("mul", a_in);
    require_defined("mul", b_in);
    a = a_in;
    b = b_in;
    return times(a, b);
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    if (da) da.add(sum_to(times(dy, b), da.shape()));
    if (db) db.add(sum_to(times(dy, a), db.shape()));
  }
};

/// y = a / b
/// da = sum_A (dy / b),  db = sum_B (−dy ⊙ a / b²) = −sum_B ((dy / b) ⊙ y)
struct Div {
  Array b, y;
  Array forward(const Array& a, const Array& b_in) {
    require_defined("div", a);
    require_defined("div", b_in);
    b = b_in;
    y = zip("div", kernels::div, std::divides<real>(), a, b);
    return y;
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    const Array dy_by_b = zip("div", kernels::div, std::divides<real>(), dy, b);
    if (da) da.add(sum_to(dy_by_b, da.shape()));
    if (db) db.add(scaled(-1, sum_to(times(dy_by_b, y), db.shape())));
  }
};

/// y = factor · x
/// dx = factor · dy
struct Scale {
  real factor = 1;
  Array forward(const Array& x) {
    require_defined("scale", x);
    return scaled(factor, x);
  }
  void backward(const Array& dy, Grad dx) const { dx.add(scaled(factor, dy)); }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return apply(Add{}, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return apply(Sub{}, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return apply(Mul{}, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return apply(Div{}, a, b); }
Tensor scale(const Tensor& x, real factor) { return apply(Scale{factor}, x); }

HEED_END
