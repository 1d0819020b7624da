#pragma once
/// Reference implementations of the kernels that this folder declares, except those of attention,
/// attend.h and gemm/.
#include "autograd/kernels/fast/dropout.h"
#include "autograd/kernels/fast/elementwise.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/kernels/fast/rows.h"
#include "autograd/kernels/fast/update.h"
#include "autograd/kernels/plain.h"

HEED_BEGIN
namespace kernels::plain {

inline real dot(const real* x, const real* y, std::int64_t n) {
  return static_cast<real>(dot_in_double(x, y, n));
}
inline double sum_squares(const real* x, std::int64_t n) { return dot_in_double(x, x, n); }
/// Values of +inf share the weight evenly: the result for each is −log of their number.
inline void log_softmax_row(const real* x, real* y, std::int64_t n) {
  const double m = largest(x, n);
  const double log_Z = m == infinity ? std::log(sum_of_weights(x, m, n)) : log_of_weights(x, m, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double below = x[i] == m ? 0 : x[i] - m;
    y[i] = static_cast<real>(m == -infinity ? m : below - log_Z);
  }
}
inline void log_softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += y[i] == -infinity ? 0 : double{dy[i]};
  for (std::int64_t i = 0; i < n; ++i) {
    dx[i] = y[i] == -infinity ? 0 : static_cast<real>(dy[i] - std::exp(double{y[i]}) * total);
  }
}

inline void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                           std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const real hi = x[i] + bias[i % cols];
    if (h) h[i] = hi;
    y[i] = static_cast<real>(unary_value(f, double{hi}));
  }
}
inline std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n) {
  while (from < n && !(x[from] > bound)) ++from;
  return from;
}

/// Element i of x_0 + … + x_(count-1). The number of arrays in the left subtree is the largest
/// power of two below count.
inline real tree_sum_value(const real* const* x, std::int64_t count, std::int64_t i) {
  if (count == 0) return 0;
  if (count == 1) return x[0] ? x[0][i] : 0;
  std::int64_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree_sum_value(x, left, i) + tree_sum_value(x + left, count - left, i);
}
inline void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = tree_sum_value(x, count, i);
}

inline double symmetric_kl_row(real* log_p, real* log_q, std::int64_t n, real scale,
                               bool with_grad) {
  double a = 0, b = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double d = double{log_p[j]} - log_q[j];
    a += std::exp(double{log_p[j]}) * d;
    b -= std::exp(double{log_q[j]}) * d;
  }
  for (std::int64_t j = 0; with_grad && j < n; ++j) {
    const double d = double{log_p[j]} - log_q[j], p = std::exp(double{log_p[j]}),
                 q = std::exp(double{log_q[j]});
    log_p[j] = static_cast<real>(scale * (p * (d - a) + (p - q)));
    log_q[j] = static_cast<real>(scale * (-q * (d + b) + (q - p)));
  }
  return a + b;
}

inline void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms,
                     std::int64_t rows, std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const bool inf = has_infinity(x, cols);
    double mean_square = 0;
    for (std::int64_t c = 0; c < cols; ++c) mean_square += std::pow(norm_input(x[c], inf), 2);
    mean_square /= static_cast<double>(cols);
    const double root = reciprocal_root(mean_square + (inf ? 0 : eps));
    for (std::int64_t c = 0; c < cols; ++c) {
      y[c] = static_cast<real>(norm_input(x[c], inf) * root * (gain ? gain[c] : 1));
    }
    rrms[r] = static_cast<real>(inf ? root * 0 : root);
  }
}
inline void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy,
                          real* dx, real* dgain, std::int64_t rows, std::int64_t cols) {
  std::vector<double> sum_gain(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto z = [&](std::int64_t c) { return double{x[r * cols + c]} * rrms[r]; };
    const auto g = [&](std::int64_t c) { return double{dy[r * cols + c]} * (gain ? gain[c] : 1); };
    double mean_gz = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      mean_gz += g(c) * z(c) / static_cast<double>(cols);
      sum_gain[c] += dy[r * cols + c] * z(c);
    }
    for (std::int64_t c = 0; dx && c < cols; ++c) {
      dx[r * cols + c] = static_cast<real>(rrms[r] * (g(c) - z(c) * mean_gz));
    }
  }
  for (std::int64_t c = 0; dgain && c < cols; ++c) {
    dgain[c] = static_cast<real>(dgain[c] + sum_gain[c]);
  }
}

/// q · 65536 (dropout.h): the number of 16-bit patterns for which a value is dropped.
inline std::uint32_t drop_threshold(real p) {
  return static_cast<std::uint32_t>(std::lround(65536 * std::clamp(double{p}, 0.0, 1.0)));
}
inline real dropout_factor(real p) {
  const std::uint32_t threshold = drop_threshold(p);
  return threshold == 65536 ? real(0) : static_cast<real>(65536.0 / (65536.0 - threshold));
}
/// The 16 bits that determine whether value i is kept; see dropout.h for their place in a block.
inline std::uint32_t dropout_bits(const RandomKey& key, std::int64_t i) {
  const std::int64_t chunk = i / 128, e = i % 128;
  const auto block = key.block(static_cast<std::uint32_t>(chunk * 16 + e % 16));
  return block[e / 32] >> (16 * (e / 16 % 2)) & 0xFFFF;
}
inline void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
                    std::int64_t n) {
  const std::uint32_t threshold = drop_threshold(p);
  const real factor = static_cast<real>(65536.0 / (65536.0 - threshold));
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = dropout_bits(key, first + i) >= threshold ? factor * x[i] : 0;
  }
}
inline void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x,
                        const real* r, real* y, std::int64_t n) {
  const std::uint32_t threshold = drop_threshold(p);
  const real factor = static_cast<real>(65536.0 / (65536.0 - threshold));
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = dropout_bits(key, first + i) >= threshold ? std::fma(factor, x[i], r[i]) : r[i];
  }
}

inline bool adam(const AdamStep& s, const real* g, real* w, real* m, real* v, std::int64_t n) {
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(w[i]);
    const double gi = double{s.grad_scale} * g[i];
    const double mi = s.beta1 * double{m[i]} + (1 - double{s.beta1}) * gi;
    const double vi = s.beta2 * double{v[i]} + (1 - double{s.beta2}) * gi * gi;
    m[i] = static_cast<real>(mi);
    v[i] = static_cast<real>(vi);
    w[i] = static_cast<real>(w[i] * (1 - double{s.lr} * s.decay) -
                             s.lr * (mi / s.c1) / (std::sqrt(vi / s.c2) + s.eps));
  }
  return finite;
}
inline bool sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w,
                real* b, std::int64_t n) {
  bool finite = true;
  for (std::int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(w[i]);
    const double step = double{grad_scale} * g[i] + double{decay} * w[i];
    const double bi = double{momentum} * b[i] + step;
    b[i] = static_cast<real>(bi);
    w[i] = static_cast<real>(w[i] - lr * bi);
  }
  return finite;
}

}  // namespace kernels::plain
HEED_END
