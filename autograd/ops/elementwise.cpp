#include "autograd/ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/elementwise.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y = f(x), elementwise               x, y: any shape
/// dx = dy ⊙ f'(x)                     the Jacobian is diagonal
///
/// f' is computed from x or from y, whichever is simpler; only that array is saved:
///
///   op         f(x)                                 f'(x)                                  saves
///   neg        −x                                   −1
///   exp        eˣ                                   y                                      y
///   log        ln x                                 1 / x                                  x
///   sqrt       √x                                   1 / (2 y)                              y
///   tanh       tanh x                               1 − y²                                 y
///   relu       max(x, 0)                            1 where y > 0, else 0                  y
///   sigmoid    σ(x) = 1 / (1 + e⁻ˣ)                 y (1 − y)                              y
///   silu       x σ(x)                               σ(x) (1 + x (1 − σ(x)))                x
///   gelu       x Φ(x)                               Φ(x) + x φ(x)                          x
///   gelu_tanh  x/2 (1 + t), t = tanh u,             (1 + t)/2 + x/2 (1 − t²) u',           x
///              u = √(2/π) (x + 0.044715 x³)         u' = √(2/π) (1 + 0.134145 x²)
///
/// Φ and φ are the standard normal distribution function and density. Sources: Hendrycks and Gimpel
/// 2016 for gelu and silu; Elfwing et al. 2017 for silu. The loops are kernels::unary and
/// kernels::unary_grad.
struct Elementwise {
  const char* name = "";
  kernels::UnaryFunction f = kernels::UnaryFunction::neg;
  Array x, y;
  Array forward(const Array& x_in) {
    require_defined(name, x_in);
    Array out(x_in.shape());
    kernels::unary(f, x_in.data(), out.data(), x_in.size());
    if (kernels::unary_needs_x(f)) x = x_in;
    if (kernels::unary_needs_y(f)) y = out;
    return out;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    kernels::unary_grad(f, x.data(), y.data(), dy.data(), g.data(), dy.size());
    dx.add(std::move(g));
  }
};

Tensor elementwise(const char* name, kernels::UnaryFunction f, const Tensor& x) {
  return apply(Elementwise{name, f, {}, {}}, x);
}

// Softplus, Abs, Sin, Cos, Pow and Clamp have no kernel: they are computed one value at a time.

template <class F>
Array each(const char* op, const Array& x, F f) {
  require_defined(op, x);
  Array y(x.shape());
  std::transform(x.data(), x.data() + x.size(), y.data(), f);
  return y;
}

/// dy ⊙ slope(x)
template <class F>
Array each(const Array& dy, const Array& x, F slope) {
  Array g(x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) g.data()[i] = dy.data()[i] * slope(x.data()[i]);
  return g;
}

/// y = ln(1 + eˣ) = max(x, 0) + ln(1 + e^−|x|)
/// dx = dy ⊙ σ(x)
struct Softplus {
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("softplus", x, [](real v) {
      return std::isnan(v) ? v : std::max(v, real(0)) + std::log1p(std::exp(-std::abs(v)));
    });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [](real v) { return static_cast<real>(unary_functions::sigmoid(v)); }));
  }
};

/// y = |x|
/// dx = dy ⊙ sign x, where sign 0 = 0
struct Abs {
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("abs", x, [](real v) { return std::abs(v); });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [](real v) { return static_cast<real>((v > 0) - (v < 0)); }));
  }
};

/// y = sin x
/// dx = dy ⊙ cos x
struct Sin {
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("sin", x, [](real v) { return std::sin(v); });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [](real v) { return std::cos(v); }));
  }
};

/// y = cos x
/// dx = −dy ⊙ sin x
struct Cos {
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("cos", x, [](real v) { return std::cos(v); });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [](real v) { return -std::sin(v); }));
  }
};

/// y = x^p
/// dx = dy ⊙ p x^(p − 1), which is 0 for p = 0, even at x = 0
struct Pow {
  real p = 1;
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("pow", x, [this](real v) { return std::pow(v, p); });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [this](real v) { return p == 0 ? real(0) : p * std::pow(v, p - 1); }));
  }
};

/// y = min(max(x, low), high)
/// dx = dy where low ≤ x ≤ high, else 0
struct Clamp {
  real low = 0, high = 0;
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return each("clamp", x, [this](real v) { return v < low ? low : v > high ? high : v; });
  }
  void backward(const Array& dy, Grad dx) const {
    dx.add(each(dy, x, [this](real v) { return static_cast<real>(v >= low && v <= high); }));
  }
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

}  // namespace

Tensor neg(const Tensor& x) { return elementwise("neg", kernels::UnaryFunction::neg, x); }
Tensor exp(const Tensor& x) { return elementwise("exp", kernels::UnaryFunction::exp, x); }
Tensor log(const Tensor& x) { return elementwise("log", kernels::UnaryFunction::log, x); }
Tensor sqrt(const Tensor& x) { return elementwise("sqrt", kernels::UnaryFunction::sqrt, x); }
Tensor tanh(const Tensor& x) { return elementwise("tanh", kernels::UnaryFunction::tanh, x); }
Tensor relu(const Tensor& x) { return elementwise("relu", kernels::UnaryFunction::relu, x); }
Tensor gelu(const Tensor& x) { return elementwise("gelu", kernels::UnaryFunction::gelu, x); }
Tensor gelu_tanh(const Tensor& x) {
  return elementwise("gelu_tanh", kernels::UnaryFunction::gelu_tanh, x);
}
Tensor sigmoid(const Tensor& x) {
  return elementwise("sigmoid", kernels::UnaryFunction::sigmoid, x);
}
Tensor silu(const Tensor& x) { return elementwise("silu", kernels::UnaryFunction::silu, x); }

Tensor softplus(const Tensor& x) { return apply(Softplus{}, x); }
Tensor abs(const Tensor& x) { return apply(Abs{}, x); }
Tensor sin(const Tensor& x) { return apply(Sin{}, x); }
Tensor cos(const Tensor& x) { return apply(Cos{}, x); }
Tensor pow(const Tensor& x, real exponent) { return apply(Pow{exponent, {}}, x); }
Tensor clamp(const Tensor& x, real low, real high) {
  if (!(low <= high)) fail("[clamp] expected low <= high, got {} and {}", low, high);
  return apply(Clamp{low, high, {}}, x);
}

Tensor gated(UnaryFunction f, const Tensor& x) {
  require_defined("gated", x.value());
  if (x.shape().rank() < 1 || x.shape()[-1] % 2 != 0)
    fail("[gated] expected x of shape [..., 2 n], got {}", x.shape());
  return apply(Gated{f, {}}, x);
}

HEED_END
