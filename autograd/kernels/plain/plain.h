#pragma once
/// The plain twins of the kernels: one loop each, in the order of the formula and in double, so
/// that they can be read against the text and the fast kernels tested against them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "autograd/kernels/dropout.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rows.h"
#include "autograd/kernels/update.h"

HEED_BEGIN
namespace kernels::plain {

constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- functions of one value ----------------------------------------------------------------

/// σ(x) = 1 / (1 + e^-x), from the side on which the exponential is at most 1.
inline double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
/// Φ(x), the normal distribution. erfc keeps the left tail exact where 1 + erf would cancel.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline double normal_pdf(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }
/// gelu_tanh(x) = x (1 + tanh u) / 2 = x σ(2u); this is 2u and its derivative.
inline double gelu_tanh_2u(double x) { return 1.5957691216057307118 * x * (1 + 0.044715 * x * x); }
inline double gelu_tanh_2du(double x) { return 1.5957691216057307118 * (1 + 3 * 0.044715 * x * x); }

inline double map_value(Map f, double x) {
  switch (f) {
    case Map::neg:
      return -x;
    case Map::exp:
      return std::exp(x);
    case Map::log:
      return std::log(x);
    case Map::sqrt:
      return std::sqrt(x);
    case Map::tanh:
      return std::tanh(x);
    case Map::relu:
      return x <= 0 ? 0 : x;
    case Map::sigmoid:
      return sigmoid(x);
    // The last three are 0 at -inf, where their formulas would say -inf * 0.
    case Map::gelu:
      return x < -40 ? 0 : x * normal_cdf(x);
    case Map::gelu_tanh:
      return x < -40 ? 0 : x * sigmoid(gelu_tanh_2u(x));
    case Map::silu:
      return x < -800 ? 0 : x * sigmoid(x);
  }
  return x;
}

/// f'(x), from x or from y = f(x), whichever map_needs_x and map_needs_y promise.
inline double map_derivative(Map f, double x, double y) {
  switch (f) {
    case Map::neg:
      return -1;
    case Map::exp:
      return y;
    case Map::log:
      return 1 / x;
    case Map::sqrt:
      return 0.5 / y;
    case Map::tanh:
      return 1 - y * y;
    case Map::relu:
      return y <= 0 ? 0 : 1;
    case Map::sigmoid:
      return y * (1 - y);
    case Map::gelu:
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      return normal_cdf(x) + x * normal_pdf(x);
    case Map::gelu_tanh: {
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      const double u = gelu_tanh_2u(x), s = sigmoid(u);
      return s + x * s * sigmoid(-u) * gelu_tanh_2du(x);
    }
    case Map::silu: {
      if (std::abs(x) > 800) return x > 0 ? 1 : 0;
      const double s = sigmoid(x);
      return s + x * s * sigmoid(-x);
    }
  }
  return 1;
}

// ---- element by element --------------------------------------------------------------------

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
inline void axpy(real alpha, const real* x, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::fma(alpha, x[i], y[i]);
}
inline void map(Map f, const real* x, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<real>(map_value(f, double{x[i]}));
}
inline void map_grad(Map f, const real* x, const real* y, const real* dy, real* dx,
                     std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double xi = map_needs_x(f) ? x[i] : 0, yi = map_needs_y(f) ? y[i] : 0;
    dx[i] = static_cast<real>(dy[i] * map_derivative(f, xi, yi));
  }
}
inline void add_bias(const real* x, const real* bias, real* y, std::int64_t rows,
                     std::int64_t cols) {
  for (std::int64_t i = 0; i < rows * cols; ++i) y[i] = x[i] + bias[i % cols];
}
inline void add_bias_map(Map f, const real* x, const real* bias, real* h, real* y,
                         std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const real hi = x[i] + bias[i % cols];
    if (h) h[i] = hi;
    y[i] = static_cast<real>(map_value(f, double{hi}));
  }
}

// ---- sums ----------------------------------------------------------------------------------

inline double dot_in_double(const real* x, const real* y, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += double{x[i]} * y[i];
  return total;
}
inline real dot(const real* x, const real* y, std::int64_t n) {
  return static_cast<real>(dot_in_double(x, y, n));
}
inline std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n) {
  while (from < n && !(x[from] > bound)) ++from;
  return from;
}
inline double sum_squares(const real* x, std::int64_t n) { return dot_in_double(x, x, n); }
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
/// Element i of x_0 + … + x_(count-1): the left half takes the largest power of two below count.
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

}  // namespace kernels::plain
HEED_END
