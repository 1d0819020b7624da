#include "autograd/kernels/elementwise.h"

#include "autograd/ops.h"
#include "autograd/ops/check.h"

HEED_BEGIN

namespace {

/// y = f(x), value by value            x, y: any shape
/// dx = dy ⊙ f'(x)                     since the Jacobian is diagonal
///
/// f' is written with whichever of x and y makes it short, and only that one is kept:
///
///   op         f(x)                                 f'(x)                                  keeps
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
/// Φ and φ are the standard normal distribution and density. gelu: Hendrycks and Gimpel 2016;
/// silu: the same, also Elfwing et al. 2017. The loops are kernels::map and kernels::map_grad.
struct Elementwise {
  const char* name = "";
  kernels::Map f = kernels::Map::neg;
  Array x, y;
  Array forward(const Array& x_in) {
    require_defined(name, x_in);
    Array out(x_in.shape());
    kernels::map(f, x_in.data(), out.data(), x_in.size());
    if (kernels::map_needs_x(f)) x = x_in;
    if (kernels::map_needs_y(f)) y = out;
    return out;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    kernels::map_grad(f, x.data(), y.data(), dy.data(), g.data(), dy.size());
    dx.add(std::move(g));
  }
};

Tensor elementwise(const char* name, kernels::Map f, const Tensor& x) {
  return apply(Elementwise{name, f, {}, {}}, x);
}

}  // namespace

Tensor neg(const Tensor& x) { return elementwise("neg", kernels::Map::neg, x); }
Tensor exp(const Tensor& x) { return elementwise("exp", kernels::Map::exp, x); }
Tensor log(const Tensor& x) { return elementwise("log", kernels::Map::log, x); }
Tensor sqrt(const Tensor& x) { return elementwise("sqrt", kernels::Map::sqrt, x); }
Tensor tanh(const Tensor& x) { return elementwise("tanh", kernels::Map::tanh, x); }
Tensor relu(const Tensor& x) { return elementwise("relu", kernels::Map::relu, x); }
Tensor gelu(const Tensor& x) { return elementwise("gelu", kernels::Map::gelu, x); }
Tensor gelu_tanh(const Tensor& x) { return elementwise("gelu_tanh", kernels::Map::gelu_tanh, x); }
Tensor sigmoid(const Tensor& x) { return elementwise("sigmoid", kernels::Map::sigmoid, x); }
Tensor silu(const Tensor& x) { return elementwise("silu", kernels::Map::silu, x); }

HEED_END
