#pragma once
/// Reference implementations of the kernels: simple loops in the order of the formula, mostly in
/// double. They can be compared with the source of the formula, and the tests compare the kernels
/// with them. On processors without suitable vector instructions, they are the kernels
/// (simd/lanes-inl.h).
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
inline void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                           std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const real hi = x[i] + bias[i % cols];
    if (h) h[i] = hi;
    y[i] = static_cast<real>(unary_value(f, double{hi}));
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

}  // namespace kernels::plain
HEED_END
