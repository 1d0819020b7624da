#include "autograd/kernels/rows.h"
#include "autograd/ops/basic.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y = x̂ ⊙ gain + bias,  x̂ = (x − μ) / √(σ² + eps),  μ and σ² = 1/n Σ (x − μ)² of each row
///
/// With g = dy ⊙ gain,
///   dx    = (g − mean(g) − x̂ mean(g ⊙ x̂)) / √(σ² + eps)
///   dgain = Σ_rows dy ⊙ x̂,  dbias = Σ_rows dy
/// because ∂x̂/∂x = (I − 1/n 11ᵀ − 1/n x̂ x̂ᵀ) / √(σ² + eps): x̂ does not change if x is shifted or, for
/// eps = 0, scaled.
///
/// Shapes: x, y: [rows, n]; gain, bias: [n] or undefined.
/// Source: Ba, Kiros and Hinton, "Layer Normalization", 2016.
struct LayerNorm {
  real eps = 0;
  Array x, gain, mean, rstd;  // mean and rstd = 1/√(σ² + eps): [rows]
  Array forward(const Array& x_in, const Array& gain_in, const Array& bias) {
    require_defined("layer_norm", x_in);
    require_width("layer_norm", "gain", gain_in, x_in);
    require_width("layer_norm", "bias", bias, x_in);
    x = x_in;
    gain = gain_in;
    mean = Array({x.rows()});
    rstd = Array({x.rows()});
    Array y(x.shape());
    if (y.size() == 0) return y;
    kernels::layer_norm(x.data(), gain.data(), bias.data(), eps, y.data(), mean.data(), rstd.data(),
                        x.rows(), x.cols());
    return y;
  }
  void backward(const Array& dy, Grad dx, Grad dgain, Grad dbias) const {
    Array gx = dx ? Array(dx.shape()) : Array();
    Array ggain = dgain ? Array::zeros(dgain.shape()) : Array();
    Array gbias = dbias ? Array::zeros(dbias.shape()) : Array();
    if (dy.size() > 0) {  // otherwise, dx is empty and dgain and dbias are zero
      kernels::layer_norm_grad(x.data(), gain.data(), mean.data(), rstd.data(), dy.data(),
                               gx.data(), ggain.data(), gbias.data(), x.rows(), x.cols());
    }
    if (dx) dx.add(std::move(gx));
    if (dgain) dgain.add(std::move(ggain));
    if (dbias) dbias.add(std::move(gbias));
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps) {
  require_eps("layer_norm", eps);
  return apply(LayerNorm{eps, {}, {}, {}, {}}, x, gain, bias);
}

HEED_END
