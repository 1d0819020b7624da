#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops/basic.h"
#include "autograd/ops/shared/affine_rows.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

Array AffineRows::product(const char* op, const Array& x_in, const Array& weight_in,
                          const Array& bias) {
  x = x_in;
  weight = weight_in;
  has_bias = bias.defined();
  if (weight.shape().rank() != 2)
    fail("[{}] expected a weight [out, in], got {}", op, weight.shape());
  if (x.shape().rank() < 1 || x.cols() != in()) {
    fail("[{}] expected x of shape [..., {}] for weight {}, got {}", op, in(), weight.shape(),
         x.shape());
  }
  if (begin < 0 || end < begin || end > weight.shape()[0]) {
    fail("[{}] rows [{}, {}) are out of range for weight {}", op, begin, end, weight.shape());
  }
  if (has_bias && bias.shape() != Shape{weight.shape()[0]}) {
    fail("[{}] expected a bias [{}], got {}", op, weight.shape()[0], bias.shape());
  }
  Array y(x.shape().with(-1, out()));
  gemm(Trans::no, Trans::yes, rows(), out(), in(), 1, x.data(), in(), weight.data() + begin * in(),
       in(), 0, y.data(), out());
  return y;
}

void AffineRows::backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const {
  const bool whole = out() == weight.shape()[0];
  if (dx) {  // dY W: [rows, in]
    real beta = 0;
    Array& target = dx.target(beta);
    gemm(Trans::no, Trans::no, rows(), in(), out(), 1, dy.data(), out(),
         weight.data() + begin * in(), in(), beta, target.data(), in());
  }
  if (dweight) {    // rows [begin, end): dYᵀ X
    real beta = 1;  // a part of W is added to zeros, so that all rows of dW are defined
    Array& target = whole ? dweight.target(beta) : dweight.sum();
    gemm(Trans::yes, Trans::no, out(), in(), rows(), 1, dy.data(), out(), x.data(), in(), beta,
         target.data() + begin * in(), in());
  }
  if (dbias) {
    Array& sum = dbias.sum();
    if (dy.size() > 0) kernels::add_column_sums(dy.data(), rows(), out(), sum.data() + begin);
  }
}

namespace {

/// y = x Wᵀ + b                       x: [..., in], W: [out, in], b: [out], y: [..., out]
/// dx = dy W,  dW = dyᵀ x,  db = Σ_rows dy
/// W and b stand for their rows [begin, end).
struct Affine {
  AffineRows rows;

  Array forward(const Array& x, const Array& weight, const Array& bias) {
    Array y = rows.product("affine", x, weight, bias);
    if (bias.defined() && y.size() > 0)
      kernels::add_bias(y.data(), bias.data() + rows.begin, y.data(), rows.rows(), rows.out());
    return y;
  }
  void backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const {
    rows.backward(dy, dx, dweight, dbias);
  }
};

std::int64_t weight_rows(const Tensor& weight) {
  return weight.shape().rank() == 0 ? 0 : weight.shape()[0];
}

}  // namespace

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return affine_rows(x, weight, bias, 0, weight_rows(weight));
}

Tensor affine_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t begin,
                   std::int64_t end) {
  Affine op;
  op.rows.begin = begin;
  op.rows.end = end;
  return apply(std::move(op), x, weight, bias);
}

HEED_END
