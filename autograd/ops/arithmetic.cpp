#include "autograd/ops/arithmetic.h"

#include <cmath>
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

/// A kernel for zip that applies F to two arrays of n values.
template <class F>
void by_value(const real* a, const real* b, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = F()(a[i], b[i]);
}
template <class F>
Array zip(const char* op, const Array& a, const Array& b) {
  require_defined(op, a);
  require_defined(op, b);
  return zip(op, by_value<F>, F(), a, b);
}

struct Larger {
  real operator()(real a, real b) const { return a > b || std::isnan(a) ? a : b; }
};
struct Smaller {
  real operator()(real a, real b) const { return a < b || std::isnan(a) ? a : b; }
};
/// 1 if a > b, ½ if a = b, else 0.
struct Step {
  real operator()(real a, real b) const { return a > b ? real(1) : a == b ? real(0.5) : real(0); }
};

/// y = max(a, b)
/// da = sum_A (dy ⊙ H(a − b)),  db = sum_B (dy ⊙ H(b − a))
/// where H is the Heaviside step function with H(0) = ½. For the minimum, H(b − a) and H(a − b) are
/// exchanged.
struct Maximum {
  bool smaller = false;
  Array a, b;
  Array forward(const Array& a_in, const Array& b_in) {
    Array y = smaller ? zip<Smaller>("minimum", a_in, b_in) : zip<Larger>("maximum", a_in, b_in);
    a = a_in;
    b = b_in;
    return y;
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    const Array &high = smaller ? b : a, &low = smaller ? a : b;
    if (da) da.add(sum_to(times(dy, zip<Step>("maximum", high, low)), da.shape()));
    if (db) db.add(sum_to(times(dy, zip<Step>("maximum", low, high)), db.shape()));
  }
};

/// y = a where c ≠ 0, else b
/// da = sum_A (dy where c ≠ 0),  db = sum_B (dy where c = 0)
struct Where {
  Array condition;
  Array forward(const Array& a, const Array& b) {
    require_defined("where", condition);
    require_defined("where", a);
    require_defined("where", b);
    const Shape shape =
        broadcast_shape("where", condition.shape(), broadcast_shape("where", a.shape(), b.shape()));
    condition = broadcast_to(condition, shape);
    return chosen(broadcast_to(a, shape), broadcast_to(b, shape));
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    const Array none = Array::zeros(dy.shape());
    if (da) da.add(sum_to(chosen(dy, none), da.shape()));
    if (db) db.add(sum_to(chosen(none, dy), db.shape()));
  }
  Array chosen(const Array& a, const Array& b) const {
    Array y(a.shape());
    for (std::int64_t i = 0; i < y.size(); ++i)
      y.data()[i] = (condition.data()[i] != 0 ? a : b).data()[i];
    return y;
  }
};

struct Greater {
  real operator()(real a, real b) const { return a > b ? real(1) : real(0); }
};
struct Equal {
  real operator()(real a, real b) const { return a == b ? real(1) : real(0); }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return apply(Add{}, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return apply(Sub{}, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return apply(Mul{}, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return apply(Div{}, a, b); }
Tensor scale(const Tensor& x, real factor) { return apply(Scale{factor}, x); }
Tensor maximum(const Tensor& a, const Tensor& b) { return apply(Maximum{false, {}, {}}, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return apply(Maximum{true, {}, {}}, a, b); }
Tensor where(const Array& condition, const Tensor& a, const Tensor& b) {
  return apply(Where{condition}, a, b);
}

Array greater(const Array& a, const Array& b) { return zip<Greater>("greater", a, b); }
Array equal(const Array& a, const Array& b) { return zip<Equal>("equal", a, b); }

HEED_END
