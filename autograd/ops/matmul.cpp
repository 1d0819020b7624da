#include <algorithm>
#include <vector>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// How the leading axes of two operands pair up: for every matrix of the result, which of a and of
/// b. Where the matrices are empty there may be more of them than can be counted: then none is.
struct BatchPairs {
  Shape batch;                     ///< leading axes of the result
  std::vector<std::int64_t> a, b;  ///< matrix numbers; empty where there is one pair only

  BatchPairs(const Shape& shape_a, const Shape& shape_b, bool empty) {
    const int rank = std::max(shape_a.rank(), shape_b.rank()) - 2;
    const auto extent = [rank](const Shape& s, int axis) {
      const int own = axis - (rank - (s.rank() - 2));
      return own < 0 ? std::int64_t{1} : s[own];
    };
    for (int axis = 0; axis < rank; ++axis) {
      const std::int64_t na = extent(shape_a, axis), nb = extent(shape_b, axis);
      if (na != nb && na != 1 && nb != 1) {
        fail("[matmul] expected leading axes that broadcast, got {} and {}", shape_a, shape_b);
      }
      batch.push_back(na == 1 ? nb : na);
    }
    for (std::int64_t i = 0; !empty && i < batch.size(); ++i) {
      std::int64_t rest = i, ia = 0, ib = 0, step_a = 1, step_b = 1;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const std::int64_t at = rest % batch[axis];
        rest /= batch[axis];
        ia += (extent(shape_a, axis) == 1 ? 0 : at) * step_a;
        ib += (extent(shape_b, axis) == 1 ? 0 : at) * step_b;
        step_a *= extent(shape_a, axis);
        step_b *= extent(shape_b, axis);
      }
      a.push_back(ia);
      b.push_back(ib);
    }
  }
};

constexpr Trans flag(bool transposed) { return transposed ? Trans::yes : Trans::no; }

/// Y = op(A) op(B) for each pair of matrices;   A: [..., m, k], B: [..., k, n], Y: [..., m, n]
/// dop(A) = dY op(B)ᵀ,  dop(B) = op(A)ᵀ dY      since d⟨C, AB⟩ = ⟨C, dA B⟩ + ⟨C, A dB⟩
/// A transposed operand takes the transposed gradient; one that was broadcast sums over its uses.
/// Source: Giles, "An extended collection of matrix derivative results", 2008, section 2.2.1.
struct Matmul {
  bool trans_a = false, trans_b = false;
  Array a, b;

  std::int64_t m() const { return a.shape()[trans_a ? -1 : -2]; }
  std::int64_t k() const { return a.shape()[trans_a ? -2 : -1]; }
  std::int64_t n() const { return b.shape()[trans_b ? -2 : -1]; }

  Array forward(const Array& a_in, const Array& b_in) {
    a = a_in;
    b = b_in;
    if (a.shape().rank() < 2 || b.shape().rank() < 2) {
      fail("[matmul] expected at least two axes, got {} and {}", a.shape(), b.shape());
    }
    if (k() != b.shape()[trans_b ? -1 : -2]) {
      fail("[matmul] expected equal inner sizes, got {}{} times {}{}", a.shape(),
           trans_a ? "ᵀ" : "", b.shape(), trans_b ? "ᵀ" : "");
    }
    BatchPairs pairs(a.shape(), b.shape(), true);
    Shape shape = pairs.batch;
    shape.push_back(m());
    shape.push_back(n());
    Array y(shape);  // first: what memory cannot hold is refused here
    if (y.size() > 0) pairs = BatchPairs(a.shape(), b.shape(), false);
    for (std::size_t i = 0; i < pairs.a.size(); ++i) {
      gemm(flag(trans_a), flag(trans_b), m(), n(), k(), 1, a.data() + pairs.a[i] * m() * k(),
           a.cols(), b.data() + pairs.b[i] * k() * n(), b.cols(), 0,
           y.data() + static_cast<std::int64_t>(i) * m() * n(), n());
    }
    return y;
  }

  void backward(const Array& dy, Grad da, Grad db) const {
    const BatchPairs pairs(a.shape(), b.shape(), dy.size() == 0);
    Array none;
    Array& to_a = da ? da.sum() : none;
    Array& to_b = db ? db.sum() : none;
    for (std::size_t i = 0; i < pairs.a.size(); ++i) {
      const real* const g = dy.data() + static_cast<std::int64_t>(i) * m() * n();
      const real* const pa = a.data() + pairs.a[i] * m() * k();
      const real* const pb = b.data() + pairs.b[i] * k() * n();
      if (da && !trans_a) {  // dA = dY op(B)ᵀ: [m, k]
        gemm(Trans::no, flag(!trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,
             to_a.data() + pairs.a[i] * m() * k(), k());
      } else if (da) {  // dA = op(B) dYᵀ: [k, m]
        gemm(flag(trans_b), Trans::yes, k(), m(), n(), 1, pb, b.cols(), g, n(), 1,
             to_a.data() + pairs.a[i] * m() * k(), m());
      }
      if (db && !trans_b) {  // dB = op(A)ᵀ dY: [k, n]
        gemm(flag(!trans_a), Trans::no, k(), n(), m(), 1, pa, a.cols(), g, n(), 1,
             to_b.data() + pairs.b[i] * k() * n(), n());
      } else if (db) {  // dB = dYᵀ op(A): [n, k]
        gemm(Trans::yes, flag(trans_a), n(), k(), m(), 1, g, n(), pa, a.cols(), 1,
             to_b.data() + pairs.b[i] * k() * n(), k());
      }
    }
  }
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  Matmul op;
  op.trans_a = trans_a;
  op.trans_b = trans_b;
  return apply(std::move(op), a, b);
}

HEED_END
