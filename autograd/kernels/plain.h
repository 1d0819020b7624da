#pragma once
/// Reference implementations of the kernels: simple loops in the order of the formula, mostly in
/// double. They can be compared with the source of the formula, and the tests compare the kernels
/// with them. On processors without suitable vector instructions, they are the kernels
/// (fast/simd/lanes-inl.h).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rows.h"

HEED_BEGIN
namespace kernels::plain {

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- elementwise ---------------------------------------------------------------------------

inline void add(const real* a, const real* b, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
inline void sub(const real* a, const real* b, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}
inline void mul(const real* a, const real* b, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}
inline void div(const real* a, const real* b, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] / b[i];
}
inline void scale(real alpha, const real* x, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}
/// With one rounding, as in the vectorised kernel.
inline void axpy(real alpha, const real* x, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::fma(alpha, x[i], y[i]);
}
inline void unary(UnaryFunction f, const real* x, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<real>(unary_value(f, double{x[i]}));
}
inline void unary_grad(UnaryFunction f, const real* x, const real* y, const real* dy, real* dx,
                       std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double xi = unary_needs_x(f) ? x[i] : 0, yi = unary_needs_y(f) ? y[i] : 0;
    dx[i] = static_cast<real>(dy[i] * unary_derivative(f, xi, yi));
  }
}
inline void add_bias(const real* x, const real* bias, real* y, std::int64_t rows,
                     std::int64_t cols) {
  for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] + bias[i % cols];
}
// ---- sums ----------------------------------------------------------------------------------

inline double dot_in_double(const real* x, const real* y, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += double{x[i]} * y[i];
  return total;
}
inline real sum(const real* x, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += x[i];
  return static_cast<real>(total);
}
inline void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  for (std::int64_t c = 0; c < cols; ++c) {
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) total += x[r * cols + c];
    y[c] = static_cast<real>(y[c] + total);
  }
}

// ---- rows ----------------------------------------------------------------------------------

// Softmax, its logarithm and cross-entropy of one row x are written with m = max x and
// Z = Σ exp(x − m): p = softmax(x) = exp(x − m) / Z, log p = x − m − log Z.

/// m: NaN if any value is NaN, -inf if n = 0.
inline double largest(const real* x, std::int64_t n) {
  double m = -infinity;
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) return x[i];
    m = std::max(m, double{x[i]});
  }
  return m;
}
/// exp(x − m). For an infinite m it is the limit: values that are +inf have weight 1; if all are
/// -inf, all weights are 0.
inline double weight(double x, double m) {
  if (x == -infinity) return 0;
  return x == m ? 1 : std::exp(x - m);
}
/// Z
inline double sum_of_weights(const real* x, double m, std::int64_t n) {
  long double sum = 0;  // long double because log Z may cancel with m
  for (std::int64_t i = 0; i < n; ++i) sum += weight(x[i], m);
  return static_cast<double>(sum);
}
/// log Z for a finite m (NaN if m is NaN). The first maximum is excluded from the sum, because its
/// weight of 1 would swamp the rest, which determines a logarithm near 0.
inline double log_of_weights(const real* x, double m, std::int64_t n) {
  const std::int64_t first = std::find(x, x + n, static_cast<real>(m)) - x;
  if (first == n) return m;  // NaN
  return std::log1p(sum_of_weights(x, m, first) + sum_of_weights(x + first + 1, m, n - first - 1));
}

inline real log_sum_exp_row(const real* x, std::int64_t n) {
  const double m = largest(x, n);
  if (std::isinf(m)) return static_cast<real>(m);
  return static_cast<real>(m + log_of_weights(x, m, n));
}
inline real softmax_row(const real* x, real* y, std::int64_t n) {
  const double m = largest(x, n), Z = sum_of_weights(x, m, n);
  const real result = log_sum_exp_row(x, n);
  for (std::int64_t i = 0; i < n; ++i) y[i] = Z == 0 ? 0 : static_cast<real>(weight(x[i], m) / Z);
  return result;
}
inline void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  const double inner = dot_in_double(y, dy, n);
  for (std::int64_t i = 0; i < n; ++i) dx[i] = static_cast<real>(y[i] * (dy[i] - inner));
}
/// With the smoothed distribution q of the target t, q_j = (1 − ε)[j = t] + ε/n, the loss is
/// −Σ q_j log p_j = (1 − ε)(m − x_t + log Z) + ε (mean(m − x) + log Z), and its gradient is p − q.
/// If m is infinite, the loss is +inf, so that training stops; the gradient remains that of
/// softmax's limit. A class at -inf has p = 0: the loss is +inf if that class is the target or if
/// ε > 0.
inline RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                                 real scale, bool with_grad) {
  const double m = largest(logits, n), eps = smoothing, eps_by_n = eps / static_cast<double>(n);
  const std::int64_t first_largest = std::find(logits, logits + n, static_cast<real>(m)) - logits;
  double rest = 0, deficit = 0;  // Z − 1 = Σ_(j ≠ first_largest) exp(x_j − m), Σ_j (m − x_j)
  for (std::int64_t j = 0; j < n; ++j) {
    if (j != first_largest) rest += weight(logits[j], m);
    deficit += m - logits[j];
  }
  RowLoss result{infinity, infinity, first_largest == target};
  if (!std::isinf(m)) {
    const double log_Z = std::log1p(rest);  // keeps a loss near 0 accurate
    result.nll = (m - logits[target]) + log_Z;
    result.loss = (1 - eps) * result.nll;
    if (eps > 0) result.loss += eps * (deficit / static_cast<double>(n) + log_Z);
  }
  if (m == -infinity) result.correct = false;  // no class has a probability above 0
  if (!with_grad) return result;
  const double Z = m == -infinity ? 1 : 1 + rest;
  for (std::int64_t j = 0; j < n; ++j) {
    const double p = weight(logits[j], m) / Z;
    // p − 1 of the first maximum, without cancellation.
    const double p_less_1 = j == first_largest && m > -infinity ? -rest / Z : p - 1;
    logits[j] = static_cast<real>(scale * ((j == target ? p_less_1 + eps : p) - eps_by_n));
  }
  return result;
}

/// The value that the norms use: x or (the only difference between this code and the formula), in a row with infinities, ±1 for an infinity and 0 for a
/// finite value. This is the limit of the row, divided by the magnitude of the infinities, as they
/// grow together. NaN remains NaN.
inline double norm_input(double x, bool row_has_infinity) {
  if (!row_has_infinity || std::isnan(x)) return x;
  return std::isinf(x) ? std::copysign(1.0, x) : 0;
}
inline bool has_infinity(const real* x, std::int64_t n) {
  return std::any_of(x, x + n, [](real v) { return std::isinf(v); });
}
/// 1 / √v, or 0 for v = 0: with eps = 0, a row of variance 0 is normalised to zeros.
inline double reciprocal_root(double v) { return v == 0 ? 0 : 1 / std::sqrt(v); }

inline void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y,
                       real* mean, real* rstd, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const bool inf = has_infinity(x, cols);
    const double n = static_cast<double>(cols);
    double mu = 0, error = 0, var = 0;
    for (std::int64_t c = 0; c < cols; ++c) mu += norm_input(x[c], inf) / n;
    for (std::int64_t c = 0; c < cols; ++c) error += norm_input(x[c], inf) - mu;
    mu += error / n;  // equal values then have variance 0
    for (std::int64_t c = 0; c < cols; ++c) var += std::pow(norm_input(x[c], inf) - mu, 2);
    var /= n;
    const double root = reciprocal_root(var + (inf ? 0 : eps));
    for (std::int64_t c = 0; c < cols; ++c) {
      const double z = (norm_input(x[c], inf) - mu) * root;
      y[c] = static_cast<real>(z * (gain ? gain[c] : 1) + (bias ? bias[c] : 0));
    }
    mean[r] = static_cast<real>(inf ? mu * infinity : mu);
    rstd[r] = static_cast<real>(inf ? root * 0 : root);
  }
}
inline void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                            const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                            std::int64_t cols) {
  std::vector<double> sum_gain(cols), sum_bias(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    double rest = 0;  // Σ (x − mean): cols times the rounding error of the stored mean
    for (std::int64_t c = 0; c < cols; ++c) rest += double{x[r * cols + c]} - mean[r];
    const double mu = mean[r] + rest / static_cast<double>(cols);
    const auto z = [&](std::int64_t c) { return (double{x[r * cols + c]} - mu) * rstd[r]; };
    const auto g = [&](std::int64_t c) { return double{dy[r * cols + c]} * (gain ? gain[c] : 1); };
    double mean_g = 0, mean_gz = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      mean_g += g(c) / static_cast<double>(cols);
      mean_gz += g(c) * z(c) / static_cast<double>(cols);
      sum_gain[c] += dy[r * cols + c] * z(c);
      sum_bias[c] += dy[r * cols + c];
    }
    for (std::int64_t c = 0; dx && c < cols; ++c) {
      dx[r * cols + c] = static_cast<real>(rstd[r] * (g(c) - mean_g - z(c) * mean_gz));
    }
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    if (dgain) dgain[c] = static_cast<real>(dgain[c] + sum_gain[c]);
    if (dbias) dbias[c] = static_cast<real>(dbias[c] + sum_bias[c]);
  }
}

}  // namespace kernels::plain
HEED_END
