#include "autograd/ops/more/affine_activation.h"

#include "autograd/kernels/fast/dropout.h"
#include "autograd/kernels/fast/elementwise.h"
#include "autograd/ops/more/check.h"
#include "autograd/ops/shared/affine_rows.h"

HEED_BEGIN

namespace {

/// h  = x Wᵀ + b,  a = f(h),  y = m ⊙ a / (1 − p)      m: the mask of dropout (ops/dropout.cpp)
/// da = m ⊙ dy / (1 − p),  dh = da ⊙ f'(h),  then as for Affine
/// The op saves h or a, whichever f' requires; for relu it saves y instead, because y > 0 exactly
/// where m = 1 and h > 0. Without dropout, p = 0 and m = 1.
struct AffineMap {
  kernels::UnaryFunction f = kernels::UnaryFunction::relu;
  real p = 0;
  RandomKey key;
  AffineRows rows;
  Array h, kept;  // each undefined if unused; kept: a or, for relu, y

  bool relu() const { return f == kernels::UnaryFunction::relu; }

  Array forward(const Array& x, const Array& weight, const Array& bias) {
    Array product = rows.product("affine_activation", x, weight, bias);
    const Array zeros = bias.defined() ? Array() : Array::zeros({weight.shape()[0]});
    const real* const b = (bias.defined() ? bias.data() : zeros.data()) + rows.begin;
    const bool needs_h = kernels::unary_needs_x(f), needs_a = kernels::unary_needs_y(f);
    Array a = needs_h ? Array(product.shape()) : product;
    kernels::add_bias_unary(f, product.data(), b, needs_h ? product.data() : nullptr, a.data(),
                            rows.rows(), rows.out());
    if (needs_h) h = product;
    if (p == 0) return needs_a ? kept = a : a;
    Array y = needs_a && !relu() ? Array(a.shape()) : a;
    kernels::dropout(key, 0, p, a.data(), y.data(), a.size());
    if (needs_a) kept = a;
    return y;
  }
  void backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const {
    Array dh(dy.shape());
    if (p == 0) {
      kernels::unary_grad(f, h.data(), kept.data(), dy.data(), dh.data(), dy.size());
    } else if (relu()) {
      kernels::unary_grad(f, nullptr, kept.data(), dy.data(), dh.data(), dy.size());
      kernels::scale(kernels::dropout_factor(p), dh.data(), dh.data(), dh.size());
    } else {
      kernels::dropout(key, 0, p, dy.data(), dh.data(), dy.size());
      kernels::unary_grad(f, h.data(), kept.data(), dh.data(), dh.data(), dy.size());
    }
    rows.backward(dh, dx, dweight, dbias);
  }
};

}  // namespace

Tensor affine_activation(kernels::UnaryFunction f, const Tensor& x, const Tensor& weight,
                         const Tensor& bias, real p, const RandomKey& key) {
  require_probability("affine_activation", p);
  AffineMap op;
  op.f = f;
  op.p = p;
  op.key = key;
  op.rows.end = weight.shape().rank() == 0 ? 0 : weight.shape()[0];
  return apply(std::move(op), x, weight, bias);
}

HEED_END
