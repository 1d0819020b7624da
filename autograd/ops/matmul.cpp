#include "autograd/ops/basic.h"

#include "autograd/kernels/gemm.h"
#include "autograd/ops/shared/broadcast.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// The shape without its last two axes, which are those of the matrices.
Shape batch_of(const Shape& shape) {
  return Shape(shape.extents().first(static_cast<std::size_t>(shape.rank() - 2)));
}

constexpr Trans flag(bool transposed) { return transposed ? Trans::yes : Trans::no; }

/// Y = op(A) op(B) for each pair of matrices, where op(M) is M or Mᵀ
///                              op(A): [..., m, k], op(B): [..., k, n], Y: [..., m, n]
/// With A' = op(A), B' = op(B):  dA' = dY B'ᵀ,  dB' = A'ᵀ dY
/// because ⟨dY, δA' B' + A' δB'⟩ = ⟨dY B'ᵀ, δA'⟩ + ⟨A'ᵀ dY, δB'⟩
/// A transposed operand receives the transposed gradient; a broadcast one, the sum over its uses.
/// Source: Giles, "An extended collection of matrix derivative results", 2008, section 2.2.
struct Matmul {
  bool trans_a = false, trans_b = false;
  Array a, b;

  std::int64_t m() const { return a.shape()[trans_a ? -1 : -2]; }
  std::int64_t k() const { return a.shape()[trans_a ? -2 : -1]; }
  std::int64_t n() const { return b.shape()[trans_b ? -2 : -1]; }

  Array forward(const Array& a_in, const Array& b_in) {
    require_defined("matmul", a_in);
    require_defined("matmul", b_in);
    a = a_in;
    b = b_in;
    if (a.shape().rank() < 2 || b.shape().rank() < 2) {
      fail("[matmul] expected at least two axes, got {} and {}", a.shape(), b.shape());
    }
    if (k() != b.shape()[trans_b ? -1 : -2]) {
      fail("[matmul] expected equal inner sizes, got {}{} times {}{}", a.shape(),
           trans_a ? "ᵀ" : "", b.shape(), trans_b ? "ᵀ" : "");
    }
    Shape shape = batch();
    shape.push_back(m());
    shape.push_back(n());
    if (k() == 0) return Array::zeros(shape);
    Array y(shape);
    for_each_matrix(shape, [&](std::int64_t of_a, std::int64_t of_b, std::int64_t of_y) {
      // Y = 1 · op(A) op(B) + 0 · Y (kernels/gemm.h)
      gemm(flag(trans_a), flag(trans_b), m(), n(), k(), 1, a.data() + of_a * m() * k(), a.cols(),
           b.data() + of_b * k() * n(), b.cols(), 0, y.data() + of_y * m() * n(), n());
    });
    return y;
  }

  void backward(const Array& dy, Grad da, Grad db) const {
    Array none;
    Array& to_a = da ? da.sum() : none;
    Array& to_b = db ? db.sum() : none;
    if (k() == 0) return;
    for_each_matrix(dy.shape(), [&](std::int64_t of_a, std::int64_t of_b, std::int64_t of_y) {
      const real* const g = dy.data() + of_y * m() * n();
      const real* const pa = a.data() + of_a * m() * k();
      const real* const pb = b.data() + of_b * k() * n();
      if (da && !trans_a) {  // dA = dY op(B)ᵀ: [m, k]
        gemm(Trans::no, flag(!trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,
             to_a.data() + of_a * m() * k(), k());
      } else if (da) {  // dA = op(B) dYᵀ: [k, m]
        gemm(flag(trans_b), Trans::yes, k(), m(), n(), 1, pb, b.cols(), g, n(), 1,
             to_a.data() + of_a * m() * k(), m());
      }
      if (db && !trans_b) {  // dB = op(A)ᵀ dY: [k, n]
        gemm(flag(!trans_a), Trans::no, k(), n(), m(), 1, pa, a.cols(), g, n(), 1,
             to_b.data() + of_b * k() * n(), n());
      } else if (db) {  // dB = dYᵀ op(A): [n, k]
        gemm(Trans::yes, flag(trans_a), n(), k(), m(), 1, g, n(), pa, a.cols(), 1,
             to_b.data() + of_b * k() * n(), k());
      }
    });
  }

 private:
  Shape batch() const {
    if (const auto shape = broadcast(batch_of(a.shape()), batch_of(b.shape()))) return *shape;
    fail("[matmul] expected leading axes that broadcast, got {} and {}", a.shape(), b.shape());
  }

  /// Calls visit(index of the matrix in a, in b, in y) for each matrix of the result y, unless y is
  /// empty. (The number of empty matrices may be huge.)
  template <class Visit>
  void for_each_matrix(const Shape& y, Visit visit) const {
    if (y.size() == 0) return;
    const BroadcastWalk walk(batch_of(y), batch_of(a.shape()), batch_of(b.shape()));
    walk.for_each_run([&](std::int64_t of_a, std::int64_t of_b, std::int64_t of_y) {
      for (std::int64_t i = 0; i < walk.run(); ++i)
        visit(of_a + (walk.repeats_a() ? 0 : i), of_b + (walk.repeats_b() ? 0 : i), of_y + i);
    });
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
