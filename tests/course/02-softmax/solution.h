#pragma once
/// Softmax with a temperature T, as an op of heed's tape, and the error of central differences.
///   y_i = exp(x_i / T) / Σ_j exp(x_j / T)
///   dx  = (y ⊙ (dy − ⟨dy, y⟩)) / T          because ∂y/∂(x/T) = diag(y) − y yᵀ
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/ops/basic.h"

namespace chapter2 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// The softmax of one row of n numbers. Every exponent must be at most 0, so that no row overflows:
/// softmax does not change if a number is subtracted from the whole row.
inline void softmax_of_row(const double* x, double temperature, std::int64_t n, double* y) {
  // --- begin exercise softmax_of_row: subtract the row's maximum, then exponentials and their sum
  const double largest = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = std::exp((x[i] - largest) / temperature);
    sum += y[i];
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] /= sum;
  // --- end exercise
}

/// The gradient of one row: from y and the gradient dy with respect to y, that with respect to x.
inline void gradient_of_row(const double* y, const double* dy, double temperature, std::int64_t n,
                            double* dx) {
  // --- begin exercise gradient_of_row: the product of dy with the Jacobian, without building it
  double along = 0;
  for (std::int64_t i = 0; i < n; ++i) along += dy[i] * y[i];
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - along) / temperature;
  // --- end exercise
}

/// The op: forward saves what backward needs; backward adds to the gradient of the input.
struct Softmax {
  double temperature = 1;
  Array y;

  Array forward(const Array& x) {
    y = Array(x.shape());
    for (std::int64_t r = 0; x.size() > 0 && r < x.rows(); ++r)
      softmax_of_row(x.row(r), temperature, x.cols(), y.row(r));
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    Array g(dy.shape());
    for (std::int64_t r = 0; g.size() > 0 && r < g.rows(); ++r)
      gradient_of_row(y.row(r), dy.row(r), temperature, g.cols(), g.row(r));
    dx.add(g);
  }
};

/// Softmax over the last axis of x, of any shape.
inline Tensor softmax(const Tensor& x, double temperature = 1) {
  return heed::apply(Softmax{temperature, {}}, x);
}

using Function = std::function<double(double)>;

/// The central difference (f(x + h) − f(x − h)) / 2h, an estimate of f′(x).
inline double central_difference(const Function& f, double x, double h) {
  // --- begin exercise central_difference: two values of f, at the same distance from x
  return (f(x + h) - f(x - h)) / (2 * h);
  // --- end exercise
}

/// The V-curve: |central difference − f′(x)| for each step h. `slope` is f′(x).
inline std::vector<double> difference_errors(const Function& f, double slope, double x,
                                             const std::vector<double>& steps) {
  // --- begin exercise difference_errors: one error for each step
  std::vector<double> errors;
  for (const double h : steps) errors.push_back(std::abs(central_difference(f, x, h) - slope));
  return errors;
  // --- end exercise
}

}  // namespace chapter2
