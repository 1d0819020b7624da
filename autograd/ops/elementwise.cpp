#include "autograd/ops/basic.h"

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

HEED_END
