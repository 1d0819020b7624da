#include "autograd/ops/more/sequences/recurrent.h"

#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops/more/check.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// The sequences in order of descending length: the first `active(t)` of them have a row at step t.
struct Steps {
  struct Sequence {
    std::int64_t first, length;  // the row of step 0, the number of rows
  };
  std::vector<Sequence, BlockAllocator<Sequence>> sequences;
  std::int64_t direction = 1;  // -1: step 0 is the last row

  Steps() = default;
  Steps(std::span<const std::int32_t> offsets, bool reverse) : direction(reverse ? -1 : 1) {
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const std::int64_t begin = offsets[s], end = offsets[s + 1];
      sequences.push_back({reverse ? end - 1 : begin, end - begin});
    }
    std::ranges::sort(sequences, [](const Sequence& a, const Sequence& b) {
      return a.length != b.length ? a.length > b.length : a.first < b.first;
    });
  }

  /// The number of sequences.
  std::int64_t width() const { return static_cast<std::int64_t>(sequences.size()); }
  std::int64_t count() const { return sequences.empty() ? 0 : sequences.front().length; }
  std::int64_t active(std::int64_t t) const {
    const auto runs = [t](const Sequence& s) { return s.length > t; };
    return std::ranges::partition_point(sequences, runs) - sequences.begin();
  }
  std::int64_t row(std::int64_t i, std::int64_t t) const {
    return sequences[static_cast<std::size_t>(i)].first + direction * t;
  }
};

/// The values of one sequence at one step and at the previous step (zeros before the first step).
template <class T>
struct Row {
  T *gates, *kept, *h;  ///< gates contains x on entry to forward
  const real *kept_before, *h_before;
};

/// On entry to backward, dh and dkept are the gradients of this step; on return, they are those
/// of the previous step, except that dh lacks the term Wᵀ du. If du_is_dx, du and dx are the same
/// array, and only dx is written.
struct RowGradient {
  real *dh, *dkept, *dx, *du;
};

/// With u = W h' + b, where ' denotes the previous step:
///   i = σ(x_i + u_i),  f = σ(x_f + u_f),  g = tanh(x_g + u_g),  o = σ(x_o + u_o)
///   c = f ⊙ c' + i ⊙ g,  h = o ⊙ tanh(c)
///   dc += dh ⊙ o ⊙ (1 − tanh²(c)),  dc' = dc ⊙ f,  dh' = Wᵀ du,  du = dx:
///   dx_i = dc ⊙ g ⊙ i (1 − i),   dx_f = dc ⊙ c' ⊙ f (1 − f),
///   dx_g = dc ⊙ i ⊙ (1 − g²),    dx_o = dh ⊙ tanh(c) ⊙ o (1 − o)
/// c is saved in Row::kept. The form is that of torch.nn.LSTM.
/// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; for the forget gate, Gers et
/// al., "Learning to Forget", 2000.
struct LstmCell {
  static constexpr const char* name = "lstm";
  static constexpr std::int64_t gates = 4;
  static constexpr bool du_is_dx = true;

  static void forward(const real* u, const Row<real>& at, std::int64_t d) {
    real *const i = at.gates, *const f = i + d, *const g = f + d, *const o = g + d;
    kernels::add(i, u, i, gates * d);
    kernels::unary(UnaryFunction::sigmoid, i, i, 2 * d);  // the gates i and f
    kernels::unary(UnaryFunction::tanh, g, g, d);
    kernels::unary(UnaryFunction::sigmoid, o, o, d);
    for (std::int64_t k = 0; k < d; ++k) at.kept[k] = f[k] * at.kept_before[k] + i[k] * g[k];
    kernels::unary(UnaryFunction::tanh, at.kept, at.h, d);
    kernels::mul(o, at.h, at.h, d);
  }

  static void backward(const Row<const real>& at, const RowGradient& to, std::int64_t d) {
    const real *const i = at.gates, *const f = i + d, *const g = f + d, *const o = g + d;
    real *const dx_i = to.dx, *const dx_f = dx_i + d, *const dx_g = dx_f + d,
                *const dx_o = dx_g + d;
    kernels::unary(UnaryFunction::tanh, at.kept, dx_o, d);  // tanh(c); dx_o replaces it below
    for (std::int64_t k = 0; k < d; ++k) {
      const real tanh_c = dx_o[k], dh = to.dh[k];
      const real dc = to.dkept[k] + dh * o[k] * (1 - tanh_c * tanh_c);
      dx_i[k] = dc * g[k] * i[k] * (1 - i[k]);
      dx_f[k] = dc * at.kept_before[k] * f[k] * (1 - f[k]);
      dx_g[k] = dc * i[k] * (1 - g[k] * g[k]);
      dx_o[k] = dh * tanh_c * o[k] * (1 - o[k]);
      to.dkept[k] = dc * f[k];
      to.dh[k] = 0;
    }
  }
};

/// With u = W h' + b, where ' denotes the previous step:
///   r = σ(x_r + u_r),  z = σ(x_z + u_z),  n = tanh(x_n + r ⊙ u_n),  h = (1 − z) ⊙ n + z ⊙ h'
///   dx_n = dh ⊙ (1 − z) ⊙ (1 − n²),        du_n = dx_n ⊙ r,
///   dx_r = du_r = dx_n ⊙ u_n ⊙ r (1 − r),  dx_z = du_z = dh ⊙ (h' − n) ⊙ z (1 − z),
///   dh' = dh ⊙ z + Wᵀ du
/// u_n is saved in Row::kept. The form is that of torch.nn.GRU, in which r scales u_n including its
/// bias.
/// Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014.
struct GruCell {
  static constexpr const char* name = "gru";
  static constexpr std::int64_t gates = 3;
  static constexpr bool du_is_dx = false;

  static void forward(const real* u, const Row<real>& at, std::int64_t d) {
    real *const r = at.gates, *const z = r + d, *const n = z + d;
    kernels::add(r, u, r, 2 * d);
    kernels::unary(UnaryFunction::sigmoid, r, r, 2 * d);  // the gates r and z
    std::copy_n(u + 2 * d, d, at.kept);
    for (std::int64_t k = 0; k < d; ++k) n[k] += r[k] * at.kept[k];
    kernels::unary(UnaryFunction::tanh, n, n, d);
    for (std::int64_t k = 0; k < d; ++k) at.h[k] = (1 - z[k]) * n[k] + z[k] * at.h_before[k];
  }

  static void backward(const Row<const real>& at, const RowGradient& to, std::int64_t d) {
    const real *const r = at.gates, *const z = r + d, *const n = z + d;
    for (std::int64_t k = 0; k < d; ++k) {
      const real dh = to.dh[k], dx_n = dh * (1 - z[k]) * (1 - n[k] * n[k]);
      to.dx[k] = to.du[k] = dx_n * at.kept[k] * r[k] * (1 - r[k]);
      to.dx[d + k] = to.du[d + k] = dh * (at.h_before[k] - n[k]) * z[k] * (1 - z[k]);
      to.dx[2 * d + k] = dx_n;
      to.du[2 * d + k] = dx_n * r[k];
      to.dh[k] = dh * z[k];
    }
  }
};

/// Advances all sequences by one step at a time: one product with W for all rows of a step, then
/// the cell for each row.
/// x: [rows, gates d], W: [gates d, d], b: [gates d], h: [rows, d]
/// dW = duᵀ h',  db = Σ_rows du;   dx and du: see the cells
template <class Cell>
struct Recurrence {
  Steps steps;
  Array weight, gates, kept, h, zeros;

  std::int64_t d() const { return weight.cols(); }
  std::int64_t columns() const { return Cell::gates * d(); }

  /// The values of sequence i at step t; `op` may be const.
  template <class Op>
  static auto row(Op& op, std::int64_t i, std::int64_t t) {
    using T = std::remove_pointer_t<decltype(op.h.data())>;
    const std::int64_t now = op.steps.row(i, t), before = op.steps.row(i, t - 1);
    return Row<T>{op.gates.row(now), op.kept.row(now), op.h.row(now),
                  t > 0 ? op.kept.row(before) : op.zeros.data(),
                  t > 0 ? op.h.row(before) : op.zeros.data()};
  }

  Array forward(const Array& x, const Array& weight_in, const Array& bias) {
    weight = weight_in;
    gates = x.clone();
    kept = Array({x.rows(), d()});
    h = Array({x.rows(), d()});
    zeros = Array::zeros({d()});
    Array hidden = Array::zeros({steps.width(), d()}), u({steps.width(), columns()});
    for (std::int64_t t = 0; t < steps.count(); ++t) {
      const std::int64_t active = steps.active(t);
      // U [active, gates d] = H' [active, d] Wᵀ + b
      gemm(Trans::no, Trans::yes, active, columns(), d(), 1, hidden.data(), d(), weight.data(), d(),
           0, u.data(), columns());
      if (bias.defined()) kernels::add_bias(u.data(), bias.data(), u.data(), active, columns());
      for (std::int64_t i = 0; i < active; ++i) {
        const Row<real> at = row(*this, i, t);
        Cell::forward(u.row(i), at, d());
        std::copy_n(at.h, d(), hidden.row(i));
      }
    }
    return h;
  }

  void backward(const Array& dy, Grad dx, Grad dweight, Grad dbias) const {
    Array g(gates.shape()), h_before(h.shape()), du_step({steps.width(), columns()});
    Array du = Cell::du_is_dx ? g : Array(gates.shape());
    Array dh = Array::zeros({steps.width(), d()}), dkept = Array::zeros(dh.shape());
    for (std::int64_t t = steps.count() - 1; t >= 0; --t) {
      const std::int64_t active = steps.active(t);
      for (std::int64_t i = 0; i < active; ++i) {
        const std::int64_t now = steps.row(i, t);
        const Row<const real> at = row(*this, i, t);
        kernels::add(dh.row(i), dy.row(now), dh.row(i), d());
        Cell::backward(at, {dh.row(i), dkept.row(i), g.row(now), du.row(now)}, d());
        std::copy_n(du.row(now), columns(), du_step.row(i));
        std::copy_n(at.h_before, d(), h_before.row(now));
      }
      // dH' [active, d] += dU [active, gates d] W
      gemm(Trans::no, Trans::no, active, d(), columns(), 1, du_step.data(), columns(),
           weight.data(), d(), 1, dh.data(), d());
    }
    if (dweight) {  // dUᵀ H': [gates d, d]
      real beta = 1;
      Array& target = dweight.target(beta);
      gemm(Trans::yes, Trans::no, columns(), d(), du.rows(), 1, du.data(), columns(),
           h_before.data(), d(), beta, target.data(), d());
    }
    if (dbias && du.size() > 0)
      kernels::add_column_sums(du.data(), du.rows(), columns(), dbias.sum().data());
    if (dx) dx.add(std::move(g));
  }
};

// Two types, so that profiles distinguish the ops.
struct Lstm : Recurrence<LstmCell> {};
struct Gru : Recurrence<GruCell> {};

template <class Op, class Cell>
Tensor apply_recurrence(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        std::span<const std::int32_t> offsets, bool reverse) {
  const Shape &in = x.shape(), &w = weight.shape();
  if (w.rank() != 2 || w[0] % Cell::gates != 0 || w[0] / Cell::gates != w[1])
    fail("[{}] expected a weight [{} d, d], got {}", Cell::name, Cell::gates, w);
  if (in.rank() != 2 || in[1] != w[0])
    fail("[{}] expected x [rows, {}] for weight {}, got {}", Cell::name, w[0], w, in);
  if (bias.defined() && bias.shape() != Shape{w[0]})
    fail("[{}] expected a bias [{}], got {}", Cell::name, w[0], bias.shape());
  require_offsets(Cell::name, offsets, in[0]);
  Op op;
  op.steps = Steps(offsets, reverse);
  return apply(std::move(op), x, weight, bias);
}

}  // namespace

Tensor lstm(const Tensor& x, const Tensor& weight, const Tensor& bias,
            std::span<const std::int32_t> offsets, bool reverse) {
  return apply_recurrence<Lstm, LstmCell>(x, weight, bias, offsets, reverse);
}

Tensor gru(const Tensor& x, const Tensor& weight, const Tensor& bias,
           std::span<const std::int32_t> offsets, bool reverse) {
  return apply_recurrence<Gru, GruCell>(x, weight, bias, offsets, reverse);
}

HEED_END
