#include "autograd/ops/more/norm.h"

#include <cmath>
#include <vector>

#include "autograd/kernels/fast/rows.h"
#include "autograd/memory/block.h"
#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// y = x̂ ⊙ gain,  x̂ = x / √(mean(x²) + eps)               x, y: [rows, n], gain: [n] or undefined
/// With g = dy ⊙ gain,
/// dx    = (g − x̂ mean(g ⊙ x̂)) / √(mean(x²) + eps)
/// dgain = Σ_rows dy ⊙ x̂
/// because x̂ is invariant to scaling x.
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
struct RmsNorm {
  real eps = 0;
  Array x, gain, rrms;  // rrms = 1/√(mean(x²) + eps): [rows]
  Array forward(const Array& x_in, const Array& gain_in) {
    require_defined("rms_norm", x_in);
    require_width("rms_norm", "gain", gain_in, x_in);
    x = x_in;
    gain = gain_in;
    rrms = Array({x.rows()});
    Array y(x.shape());
    if (y.size() == 0) return y;
    kernels::rms_norm(x.data(), gain.data(), eps, y.data(), rrms.data(), x.rows(), x.cols());
    return y;
  }
  void backward(const Array& dy, Grad dx, Grad dgain) const {
    Array gx = dx ? Array(dx.shape()) : Array();
    Array ggain = dgain ? Array::zeros(dgain.shape()) : Array();
    if (dy.size() > 0) {
      kernels::rms_norm_grad(x.data(), gain.data(), rrms.data(), dy.data(), gx.data(), ggain.data(),
                             x.rows(), x.cols());
    }
    if (dx) dx.add(std::move(gx));
    if (dgain) dgain.add(std::move(ggain));
  }
};

using Sums = std::vector<double, BlockAllocator<double>>;

/// 1/√v; 0 if v is 0, so that a column of equal values without eps is normalised to 0.
template <class T>
T reciprocal_root(T v) {
  return v == 0 ? T(0) : 1 / std::sqrt(v);
}

/// y = x̂ ⊙ gain + bias,  x̂ = (x − μ) r,  r = 1/√(σ² + eps),  μ and σ² of each column of the batch
///
/// With the means over the rows of the whole batch,
///   dx    = gain r (dy − mean(dy) − x̂ mean(dy ⊙ x̂))
///   dgain = Σ_rows dy ⊙ x̂,  dbias = Σ_rows dy
/// as in layer norm, but for each column. dgain and dbias sum over this rank's rows only.
///
/// Shapes: x, y: [rows, n]; gain, bias: [n].
/// Source: Ioffe and Szegedy, "Batch Normalization", 2015.
struct BatchNorm {
  real eps = 0;
  BatchMoments* moments = nullptr;
  Rank rank;
  Array x, gain;
  Sums mean, root;  // μ and r of each column; mean[n] is used to sum the ranks' numbers of rows
  double rows = 0;  // number of rows of the whole batch

  Array forward(const Array& x_in, const Array& gain_in, const Array& bias) {
    require_defined("batch_norm", x_in);
    for (const Array* const w : {&gain_in, &bias}) {
      require_defined("batch_norm", *w);
      require_width("batch_norm", w == &bias ? "bias" : "gain", *w, x_in);
    }
    x = x_in;
    gain = gain_in;
    const auto n = static_cast<std::size_t>(x.cols());
    mean.assign(n + 1, 0);
    mean[n] = static_cast<double>(x.rows());
    add_columns([](double v, std::size_t) { return v; }, mean);
    rank.sum(mean);
    rows = std::max(mean[n], 1.0);
    for (double& m : mean) m /= rows;
    root.assign(n, 0);
    add_columns([&](double v, std::size_t c) { return (v - mean[c]) * (v - mean[c]); }, root);
    rank.sum(root);
    if (moments != nullptr) *moments = {Array({x.cols()}), Array({x.cols()}), std::llround(rows)};
    for (std::size_t c = 0; c < n; ++c) {
      const double variance = root[c] / rows;
      if (moments != nullptr) {
        moments->mean.data()[c] = static_cast<real>(mean[c]);
        moments->variance.data()[c] = static_cast<real>(variance);
      }
      root[c] = reciprocal_root(variance + eps);
    }
    Array y(x.shape());
    for (std::int64_t r = 0; r < rows_with_values(); ++r) {
      for (std::size_t c = 0; c < n; ++c)
        y.row(r)[c] = static_cast<real>(hat(r, c) * gain.data()[c] + bias.data()[c]);
    }
    return y;
  }

  void backward(const Array& dy, Grad dx, Grad dgain, Grad dbias) const {
    const auto n = static_cast<std::size_t>(x.cols());
    Sums sums(2 * n, 0);  // Σ dy, Σ dy ⊙ x̂ of each column
    for (std::int64_t r = 0; r < rows_with_values(); ++r) {
      const real* const g = dy.row(r);
      for (std::size_t c = 0; c < n; ++c) {
        sums[c] += g[c];
        sums[n + c] += g[c] * hat(r, c);
      }
    }
    const auto own = [&](std::size_t from) {
      Array a({x.cols()});
      for (std::size_t c = 0; c < n; ++c) a.data()[c] = static_cast<real>(sums[from + c]);
      return a;
    };
    if (dbias) dbias.add(own(0));
    if (dgain) dgain.add(own(n));
    rank.sum(sums);
    if (!dx) return;
    Array gx(x.shape());
    for (std::int64_t r = 0; r < rows_with_values(); ++r) {
      const real* const g = dy.row(r);
      for (std::size_t c = 0; c < n; ++c) {
        gx.row(r)[c] = static_cast<real>(gain.data()[c] * root[c] *
                                         (g[c] - sums[c] / rows - hat(r, c) * sums[n + c] / rows));
      }
    }
    dx.add(std::move(gx));
  }

 private:
  /// The number of rows, or 0 if they have no columns, so that no loop runs over empty rows.
  std::int64_t rows_with_values() const { return x.size() == 0 ? 0 : x.rows(); }
  double hat(std::int64_t r, std::size_t c) const { return (x.row(r)[c] - mean[c]) * root[c]; }
  template <class Term>
  void add_columns(Term term, Sums& sums) const {
    for (std::int64_t r = 0; r < rows_with_values(); ++r) {
      const real* const v = x.row(r);
      for (std::size_t c = 0; c < static_cast<std::size_t>(x.cols()); ++c) sums[c] += term(v[c], c);
    }
  }
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, real eps,
                  BatchMoments* moments, Rank rank) {
  require_eps("batch_norm", eps);
  BatchNorm op;
  op.eps = eps;
  op.moments = moments;
  op.rank = rank;
  return apply(std::move(op), x, gain, bias);
}

Tensor batch_norm(const Tensor& x, const Tensor& gain, const Tensor& bias,
                  const BatchMoments& moments, real eps) {
  require_eps("batch_norm", eps);
  Array root(moments.variance.shape());
  for (std::int64_t c = 0; c < root.size(); ++c)
    root.data()[c] = reciprocal_root(moments.variance.data()[c] + eps);
  return add(mul(sub(x, Tensor(moments.mean)), mul(Tensor(root), gain)), bias);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, real eps) {
  require_eps("rms_norm", eps);
  return apply(RmsNorm{eps, {}, {}, {}}, x, gain);
}

HEED_END
