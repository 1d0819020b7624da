#include "autograd/ops/more/attention/linear_attention.h"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/gemm.h"
#include "autograd/ops/more/check.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// φ(x) = elu(x) + 1 = x + 1 above 0, eˣ below. φ(q) φ(k)ᵀ replaces the exponential of a score.
/// φ'(x) = min(φ(x), 1)
real phi(real x) { return x > 0 ? x + 1 : std::exp(x); }

constexpr real epsilon = real(1e-6);  // added to the sum of weights, which is 0 if all φ underflow

/// With Q = φ(q), K = φ(k) and V' = [V, 1], per sequence and head:
///   N'_i = [N_i, n_i] = Q_i Σ_j K_jᵀ V'_j,   O_i = N_i / n_i      j: all keys or, if causal, j ≤ i
/// The column of ones in V' yields n, the sum of the weights. With dN' = [dO/n, −⟨dO, O⟩/n]:
///   dQ_i = dN'_i (Σ_j K_jᵀ V'_j)ᵀ,  dK_j = V'_j (Σ_i Q_iᵀ dN'_i)ᵀ,  dV'_j = K_j Σ_i Q_iᵀ dN'_i
/// and dq = dQ ⊙ φ'(q), dk = dK ⊙ φ'(k). Causal sums run over chunks of rows: one array contains
/// Σ K_jᵀ V'_j of the earlier chunks or, for dK and dV', Σ Q_iᵀ dN'_i of the later chunks. Within a
/// chunk, the pairs j ≤ i form a lower triangle.
/// Source: Katharopoulos et al., "Transformers are RNNs", 2020, sections 3.2 to 3.4.
struct LinearAttention {
  static constexpr std::int64_t chunk = 64;

  HeadLayout layout;
  std::vector<std::int32_t, BlockAllocator<std::int32_t>> offsets;
  bool causal = false;
  Array x, output, totals;  // totals: n_i + epsilon for each token and head

  /// One head of one sequence: Q, K [rows, size] and V' [rows, size + 1].
  struct Head {
    Array q, k, v;
  };
  /// Rows [begin, end) of the batch or of a sequence.
  struct Rows {
    std::int64_t begin, end;
    std::int64_t count() const { return end - begin; }
  };

  std::int64_t q_columns() const { return layout.heads * layout.size; }
  std::int64_t k_column(std::int64_t head) const {
    return q_columns() + layout.key_head(head) * layout.size;
  }
  std::int64_t v_column(std::int64_t head) const {
    return k_column(head) + layout.key_heads * layout.size;
  }

  Head head_of(const Rows& sequence, std::int64_t head) const {
    const std::int64_t n = sequence.count(), size = layout.size;
    Head all{Array({n, size}), Array({n, size}), Array({n, size + 1})};
    for (std::int64_t r = 0; r < n; ++r) {
      const real* const row = x.row(sequence.begin + r);
      const real *const q = row + head * size, *const k = row + k_column(head);
      std::transform(q, q + size, all.q.row(r), phi);
      std::transform(k, k + size, all.k.row(r), phi);
      std::copy_n(row + v_column(head), size, all.v.row(r));
      all.v.row(r)[size] = 1;
    }
    return all;
  }
  template <class Body>
  void for_each_head(Body body) const {
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const Rows sequence{offsets[s], offsets[s + 1]};
      for (std::int64_t head = 0; head < layout.heads && sequence.count() > 0; ++head)
        body(sequence, head);
    }
  }
  std::int64_t chunks(std::int64_t rows) const { return causal ? (rows + chunk - 1) / chunk : 1; }
  /// The rows of chunk i; if not causal, one chunk contains all rows.
  Rows rows_of(std::int64_t i, std::int64_t rows) const {
    return causal ? Rows{i * chunk, std::min((i + 1) * chunk, rows)} : Rows{0, rows};
  }

  /// sum [a's columns, b's columns] += aᵀ b over rows r.
  static void add_outer(const Rows& r, const Array& a, const Array& b, Array& sum) {
    gemm(Trans::yes, Trans::no, a.cols(), b.cols(), r.count(), 1, a.row(r.begin), a.cols(),
         b.row(r.begin), b.cols(), 1, sum.data(), b.cols());
  }
  /// Rows r of y = rows r of a times m or mᵀ.
  static void times(const Rows& r, const Array& a, const Array& m, Trans trans, Array& y) {
    gemm(Trans::no, trans, r.count(), y.cols(), a.cols(), 1, a.row(r.begin), a.cols(), m.data(),
         m.cols(), 0, y.row(r.begin), y.cols());
  }
  /// The lower triangle of a bᵀ for rows r of a and b: [rows, rows].
  static Array triangle(const Rows& r, const Array& a, const Array& b) {
    const std::int64_t n = r.count();
    Array t({n, n});
    gemm(Trans::no, Trans::yes, n, n, a.cols(), 1, a.row(r.begin), a.cols(), b.row(r.begin),
         b.cols(), 0, t.data(), n);
    for (std::int64_t i = 0; i < n; ++i) std::fill(t.row(i) + i + 1, t.row(i) + n, real(0));
    return t;
  }
  /// Rows r of y += t or tᵀ times rows r of a.
  static void add_triangle(const Rows& r, Trans trans, const Array& t, const Array& a, Array& y) {
    gemm(trans, Trans::no, r.count(), y.cols(), r.count(), 1, t.data(), t.cols(), a.row(r.begin),
         a.cols(), 1, y.row(r.begin), y.cols());
  }

  /// y_i = a_i Σ_j b_jᵀ c_j over all j or, if causal, over j ≤ i (with `later`, over j ≥ i). With
  /// Trans::yes, the sum is transposed.
  Array mixed(const Array& a, const Array& b, const Array& c, bool later, Trans trans) const {
    const std::int64_t rows = a.rows(), count = chunks(rows);
    Array sum = Array::zeros({b.cols(), c.cols()});
    Array y({rows, trans == Trans::no ? c.cols() : b.cols()});
    if (!causal) add_outer({0, rows}, b, c, sum);
    for (std::int64_t i = 0; i < count; ++i) {
      const Rows r = rows_of(later ? count - 1 - i : i, rows);
      times(r, a, sum, trans, y);
      if (!causal) break;
      // With the sum transposed, y_i = Σ ⟨a_i, c_j⟩ b_j.
      const Array& with = trans == Trans::no ? b : c;
      const Array& gives = trans == Trans::no ? c : b;
      later ? add_triangle(r, Trans::yes, triangle(r, with, a), gives, y)
            : add_triangle(r, Trans::no, triangle(r, a, with), gives, y);
      add_outer(r, b, c, sum);
    }
    return y;
  }

  Array forward(const Array& x_in) {
    x = x_in;
    const std::int64_t size = layout.size;
    output = Array({x.rows(), q_columns()});
    if (q_columns() == 0) return output;
    totals = Array({x.rows(), layout.heads});
    for_each_head([&](const Rows& sequence, std::int64_t head) {
      const Head h = head_of(sequence, head);
      const Array n = mixed(h.q, h.k, h.v, false, Trans::no);  // N' [rows, size + 1]
      for (std::int64_t r = 0; r < n.rows(); ++r) {
        const real total = n.row(r)[size] + epsilon;
        totals.row(sequence.begin + r)[head] = total;
        real* const o = output.row(sequence.begin + r) + head * size;
        for (std::int64_t c = 0; c < size; ++c) o[c] = n.row(r)[c] / total;
      }
    });
    return output;
  }
  /// dN' [rows, size + 1] of one head
  Array numerator_gradient(const Rows& sequence, std::int64_t head, const Array& dy) const {
    const std::int64_t size = layout.size;
    Array dn({sequence.count(), size + 1});
    for (std::int64_t r = 0; r < dn.rows(); ++r) {
      const std::int64_t row = sequence.begin + r, column = head * size;
      const real *const g = dy.row(row) + column, *const o = output.row(row) + column;
      const real total = totals.row(row)[head];
      real inner = 0;
      for (std::int64_t c = 0; c < size; ++c) {
        inner += g[c] * o[c];
        dn.row(r)[c] = g[c] / total;
      }
      dn.row(r)[size] = -inner / total;
    }
    return dn;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g = Array::zeros(x.shape());
    if (q_columns() == 0) return dx.add(std::move(g));
    for_each_head([&](const Rows& sequence, std::int64_t head) {
      const Head h = head_of(sequence, head);
      const Array dn = numerator_gradient(sequence, head, dy);
      const Array dq = mixed(dn, h.k, h.v, false, Trans::yes);  // dN'_i (Σ K_jᵀ V'_j)ᵀ
      const Array dk = mixed(h.v, h.q, dn, true, Trans::yes);   // V'_j (Σ Q_iᵀ dN'_i)ᵀ
      const Array dv = mixed(h.k, h.q, dn, true, Trans::no);    // K_j Σ Q_iᵀ dN'_i
      for (std::int64_t r = 0; r < dn.rows(); ++r) {
        real* const row = g.row(sequence.begin + r);
        for (std::int64_t c = 0; c < layout.size; ++c) {
          row[head * layout.size + c] = dq.row(r)[c] * std::min(h.q.row(r)[c], real(1));
          row[k_column(head) + c] += dk.row(r)[c] * std::min(h.k.row(r)[c], real(1));
          row[v_column(head) + c] += dv.row(r)[c];
        }
      }
    });
    dx.add(std::move(g));
  }
};

}  // namespace

Tensor linear_attention(const Tensor& qkv, std::span<const std::int32_t> offsets, bool causal,
                        const AttentionOptions& options) {
  constexpr const char* op = "linear_attention";
  require_defined(op, qkv.value());
  if (qkv.shape().rank() != 2)
    fail("[{}] expected qkv [tokens, (heads + 2 key_heads) size], got {}", op, qkv.shape());
  require_offsets(op, offsets, qkv.shape()[0]);
  LinearAttention attention;
  attention.layout = options.layout(op, qkv.shape()[1], true);
  attention.offsets.assign(offsets.begin(), offsets.end());
  attention.causal = causal;
  return apply(std::move(attention), qkv);
}

void LinearAttentionStep::operator()(const real* q, const real* kv, real* state, real* out) const {
  const std::int64_t size = layout_.size, wide = size + 1;
  for (std::int64_t k = 0; k < layout_.key_heads; ++k) {
    const real *const keys = kv + k * size, *const values = keys + layout_.key_heads * size;
    for (std::int64_t a = 0; a < size; ++a) {
      real* const sum = state + (k * size + a) * wide;
      const real weight = phi(keys[a]);
      for (std::int64_t c = 0; c < size; ++c) sum[c] += weight * values[c];
      sum[size] += weight;
    }
  }
  for (std::int64_t h = 0; h < layout_.heads; ++h) {
    const real* const sums = state + layout_.key_head(h) * size * wide;
    real* const o = out + h * size;
    std::fill_n(o, size, real(0));
    real total = epsilon;
    for (std::int64_t a = 0; a < size; ++a) {
      const real weight = phi(q[h * size + a]);
      const real* const sum = sums + a * wide;
      for (std::int64_t c = 0; c < size; ++c) o[c] += weight * sum[c];
      total += weight * sum[size];
    }
    for (std::int64_t c = 0; c < size; ++c) o[c] /= total;
  }
}

HEED_END
