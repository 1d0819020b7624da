#pragma once
/// Positions as rotations: the sinusoidal encoding, the matrix that shifts it, and rotary.
///   θ_i = 10000^(−2i/d)                              pair i turns by θ_i from one position to the next
///   PE(p, 2i) = sin(p θ_i),  PE(p, 2i+1) = cos(p θ_i)                       PE: [rows, d]
///   PE(p + k) = M_k PE(p)                            M_k: [d, d], the same for every p
///   rotary: pair i of the row at position p turns by p θ_i                  x, y: [n, d]
/// Sources: Vaswani et al., "Attention Is All You Need", 2017, section 3.5; Su et al., "RoFormer",
/// 2021, equation 34.
#include <cmath>
#include <cstdint>

#include "autograd/ops/basic.h"

namespace chapter6 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// θ_i for pair i of d columns, in radians for each position. θ_0 is 1.
inline double frequency(std::int64_t i, std::int64_t d) {
  // --- begin exercise frequency: 10000 to the power of −2i/d; i and d are integers
  return std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
  // --- end exercise
}

/// PE(p, c) for p = 0 … rows − 1 and c = 0 … d − 1. An odd d ends with a sine.
inline Array positional_encoding(std::int64_t rows, std::int64_t d) {
  Array table = Array::zeros({rows, d});
  // --- begin exercise positional_encoding: table.row(p)[c] is a sine for even c, a cosine for odd c
  for (std::int64_t p = 0; p < rows; ++p) {
    for (std::int64_t c = 0; c < d; ++c) {
      const double angle = static_cast<double>(p) * frequency(c / 2, d);
      table.row(p)[c] = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  // --- end exercise
  return table;
}

/// M_k, with PE(p + k) = M_k PE(p) for columns PE(p) [d, 1]. d is even; k may be negative.
inline Array shift_matrix(std::int64_t k, std::int64_t d) {
  Array m = Array::zeros({d, d});
  // --- begin exercise shift_matrix: a block of 2 × 2 for each pair, by the addition theorems
  for (std::int64_t i = 0; i < d / 2; ++i) {
    const double angle = static_cast<double>(k) * frequency(i, d);
    m.row(2 * i)[2 * i] = std::cos(angle);
    m.row(2 * i)[2 * i + 1] = std::sin(angle);
    m.row(2 * i + 1)[2 * i] = -std::sin(angle);
    m.row(2 * i + 1)[2 * i + 1] = std::cos(angle);
  }
  // --- end exercise
  return m;
}

/// ⟨PE(p), PE(p + k)⟩, which depends on k alone. d is even.
inline double inner_product(std::int64_t k, std::int64_t d) {
  // --- begin exercise inner_product: the sum over the pairs, which does not depend on p
  double sum = 0;
  for (std::int64_t i = 0; i < d / 2; ++i)
    sum += std::cos(static_cast<double>(k) * frequency(i, d));
  return sum;
  // --- end exercise
}

/// x [n, d] with pair i, columns 2i and 2i + 1, of row r turned by direction · (first + r) · θ_i:
///   y_2i = x_2i cos − x_2i+1 sin,  y_2i+1 = x_2i sin + x_2i+1 cos
/// d is even; direction is 1 or −1.
inline Array turned(const Array& x, std::int64_t first, double direction) {
  Array y(x.shape());
  // --- begin exercise turned: two loops, over rows and pairs
  for (std::int64_t r = 0; y.size() > 0 && r < x.rows(); ++r) {
    for (std::int64_t i = 0; i < x.cols() / 2; ++i) {
      const double angle = direction * static_cast<double>(first + r) * frequency(i, x.cols());
      const double a = x.row(r)[2 * i], b = x.row(r)[2 * i + 1];
      y.row(r)[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      y.row(r)[2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  // --- end exercise
  return y;
}

/// The op. Row 0 stands at position `first`: 0 in training, later ones in decoding with a cache.
struct Rotary {
  std::int64_t first = 0;

  Array forward(const Array& x) const { return turned(x, first, 1); }
  void backward(const Array& dy, Grad dx) const {
    // --- begin exercise backward: dx.add(…), with the transpose of each rotation
    dx.add(turned(dy, first, -1));
    // --- end exercise
  }
};

/// Rotates the rows of queries or keys x [n, d] by their positions → [n, d].
inline Tensor rotary(const Tensor& x, std::int64_t first = 0) {
  if (x.shape().rank() != 2 || x.shape()[1] % 2 != 0)
    heed::fail("[rotary] expected rows of an even width, got {}", x.shape());
  return heed::apply(Rotary{first}, x);
}

}  // namespace chapter6
