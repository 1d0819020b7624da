#include "autograd/ops/more/elementwise.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// An op without a kernel, computed one value at a time: y = F::value(x), dx = dy ⊙ F::slope(x).
template <class F>
struct EachValue {
  Array x;
  Array forward(const Array& x_in) {
    require_defined(F::name, x_in);
    x = x_in;
    Array y(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) y.data()[i] = function().value(x.data()[i]);
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      g.data()[i] = dy.data()[i] * function().slope(x.data()[i]);
    dx.add(std::move(g));
  }
  const F& function() const { return static_cast<const F&>(*this); }
};

/// y = ln(1 + eˣ) = max(x, 0) + ln(1 + e^−|x|)
/// dx = dy ⊙ σ(x)
struct Softplus : EachValue<Softplus> {
  static constexpr const char* name = "softplus";
  static real value(real v) {
    return std::isnan(v) ? v : std::max(v, real(0)) + std::log1p(std::exp(-std::abs(v)));
  }
  static real slope(real v) { return static_cast<real>(unary_functions::sigmoid(v)); }
};

/// y = |x|
/// dx = dy ⊙ sign x, where sign 0 = 0
struct Abs : EachValue<Abs> {
  static constexpr const char* name = "abs";
  static real value(real v) { return std::abs(v); }
  static real slope(real v) { return static_cast<real>((v > 0) - (v < 0)); }
};

/// y = sin x
/// dx = dy ⊙ cos x
struct Sin : EachValue<Sin> {
  static constexpr const char* name = "sin";
  static real value(real v) { return std::sin(v); }
  static real slope(real v) { return std::cos(v); }
};

/// y = cos x
/// dx = −dy ⊙ sin x
struct Cos : EachValue<Cos> {
  static constexpr const char* name = "cos";
  static real value(real v) { return std::cos(v); }
  static real slope(real v) { return -std::sin(v); }
};

/// y = x^p
/// dx = dy ⊙ p x^(p − 1), which is 0 for p = 0, even at x = 0
struct Pow : EachValue<Pow> {
  static constexpr const char* name = "pow";
  real p = 1;
  real value(real v) const { return std::pow(v, p); }
  real slope(real v) const { return p == 0 ? real(0) : p * std::pow(v, p - 1); }
};

/// y = min(max(x, low), high)
/// dx = dy where low ≤ x ≤ high, else 0
struct Clamp : EachValue<Clamp> {
  static constexpr const char* name = "clamp";
  real low = 0, high = 0;
  real value(real v) const { return v < low ? low : v > high ? high : v; }
  real slope(real v) const { return static_cast<real>(v >= low && v <= high); }
};

/// y = f(a) ⊙ b                              x = [a, b]: [..., 2 n] → y: [..., n]
/// da = dy ⊙ b ⊙ f'(a),  db = dy ⊙ f(a)
/// With f = sigmoid, it is the gated linear unit, with silu SwiGLU, with gelu GEGLU.
/// Source: Shazeer, "GLU Variants Improve Transformer", 2020, equation 5.
struct Gated {
  kernels::UnaryFunction f = kernels::UnaryFunction::sigmoid;
  Array x;

  Array forward(const Array& x_in) {
    x = x_in;
    const std::int64_t n = x.cols() / 2;
    Array y(x.shape().with(-1, n));
    if (y.size() == 0) return y;  // avoids a loop: rows or n may be huge
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      kernels::unary(f, x.row(r), y.row(r), n);
      kernels::mul(y.row(r), x.row(r) + n, y.row(r), n);
    }
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    const std::int64_t n = dy.cols();
    // Avoids a loop over rows and an allocation of n values: rows or n may be huge if dy is empty.
    if (dy.size() == 0) return dx.add(Array(x.shape()));
    Array g(x.shape()), fa({n});
    for (std::int64_t r = 0; r < dy.rows(); ++r) {
      const real *const a = x.row(r), *const b = a + n;
      real *const da = g.row(r), *const db = da + n;
      kernels::unary(f, a, fa.data(), n);
      kernels::mul(dy.row(r), fa.data(), db, n);
      kernels::mul(dy.row(r), b, da, n);
      kernels::unary_grad(f, a, fa.data(), da, da, n);
    }
    dx.add(std::move(g));
  }
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
    if (da)
      da.add(sum_to(
          zip("mul", kernels::mul, std::multiplies<real>(), dy, zip<Step>("maximum", high, low)),
          da.shape()));
    if (db)
      db.add(sum_to(
          zip("mul", kernels::mul, std::multiplies<real>(), dy, zip<Step>("maximum", low, high)),
          db.shape()));
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

}  // namespace

Tensor softplus(const Tensor& x) { return apply(Softplus{}, x); }
Tensor abs(const Tensor& x) { return apply(Abs{}, x); }
Tensor sin(const Tensor& x) { return apply(Sin{}, x); }
Tensor cos(const Tensor& x) { return apply(Cos{}, x); }
Tensor pow(const Tensor& x, real exponent) { return apply(Pow{{}, exponent}, x); }
Tensor clamp(const Tensor& x, real low, real high) {
  if (!(low <= high)) fail("[clamp] expected low <= high, got {} and {}", low, high);
  return apply(Clamp{{}, low, high}, x);
}

Tensor gated(UnaryFunction f, const Tensor& x) {
  require_defined("gated", x.value());
  if (x.shape().rank() < 1 || x.shape()[-1] % 2 != 0)
    fail("[gated] expected x of shape [..., 2 n], got {}", x.shape());
  return apply(Gated{f, {}}, x);
}

Tensor maximum(const Tensor& a, const Tensor& b) { return apply(Maximum{false, {}, {}}, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return apply(Maximum{true, {}, {}}, a, b); }
Tensor where(const Array& condition, const Tensor& a, const Tensor& b) {
  return apply(Where{condition}, a, b);
}

Array greater(const Array& a, const Array& b) { return zip<std::greater<real>>("greater", a, b); }
Array equal(const Array& a, const Array& b) { return zip<std::equal_to<real>>("equal", a, b); }

HEED_END
