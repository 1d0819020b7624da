#include "autograd/ops/more/attention/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// The angle by which pair i is rotated from one position to the next.
double rate_of(std::int64_t i, std::int64_t size, double base) {
  return std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
}

/// Rotates n pairs. The first values of consecutive pairs are `step` apart, as are the second
/// values.
template <std::int64_t step, class T>
void rotate_pairs(const T* a, const T* b, T* ya, T* yb, const T* cosine, const T* sine, T direction,
                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T xa = a[i * step], xb = b[i * step], s = direction * sine[i];
    ya[i * step] = xa * cosine[i] - xb * s;
    yb[i * step] = xb * cosine[i] + xa * s;
  }
}
/// Rotates a head of `size` values from x to y, which may be equal.
template <class T>
void rotate_one(const T* x, T* y, const T* cosine, const T* sine, T direction,
                const RotaryOptions& options) {
  const std::int64_t half = options.size / 2;
  options.pairs == RotaryPairs::halves
      ? rotate_pairs<1>(x, x + half, y, y + half, cosine, sine, direction, half)
      : rotate_pairs<2>(x, x + 1, y, y + 1, cosine, sine, direction, half);
}

/// [positions, size]: row p contains cos(p · base^(−2i/size)) for i from 0 to size/2 − 1, then the
/// sines of the same angles.
Array turns(std::int64_t positions, std::int64_t size, double base) {
  Array table({positions, size});
  const std::int64_t half = size / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double rate = rate_of(i, size, base);
    for (std::int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * rate;
      table.row(p)[i] = static_cast<real>(std::cos(angle));
      table.row(p)[half + i] = static_cast<real>(std::sin(angle));
    }
  }
  return table;
}

/// A table (`turns`) of at least this number of positions. Each thread caches its last table, whose
/// values depend only on `size` and `base`.
Array turns_up_to(std::int64_t positions, std::int64_t size, double base) {
  thread_local Array kept;
  thread_local double kept_base = 0;
  if (!kept.defined() || kept.cols() != size || kept_base != base || kept.rows() < positions) {
    kept = turns(std::max<std::int64_t>(2 * positions, 128), size, base);
    kept_base = base;
  }
  return kept;
}

/// For pair i of a head at position p, with the indices (a, b) and θ = p · base^(−2i/size):
///   y_a = x_a cos θ − x_b sin θ,    y_b = x_b cos θ + x_a sin θ
///   dx = dy rotated by −θ, because the inverse of a rotation is its transpose
/// Source: Su et al., "RoFormer", 2021, section 3.2.2, equation 34.
struct Rotary {
  RotaryOptions options;
  std::vector<std::int32_t, BlockAllocator<std::int32_t>> positions;

  Array rotated(const Array& x, real direction) const {
    const std::int64_t size = options.size;
    const std::int32_t last = positions.empty() ? 0 : *std::ranges::max_element(positions);
    const Array table = turns_up_to(last + 1, size, options.base);
    Array y(x.shape());
    for (std::int64_t r = 0; r < x.rows(); ++r) {
      const real* const cosine = table.row(positions[r]);
      for (std::int64_t c = 0; c < options.columns; c += size)
        rotate_one(x.row(r) + c, y.row(r) + c, cosine, cosine + size / 2, direction, options);
      std::copy_n(x.row(r) + options.columns, x.cols() - options.columns,
                  y.row(r) + options.columns);
    }
    return y;
  }

  Array forward(const Array& x) const { return rotated(x, 1); }
  void backward(const Array& dy, Grad dx) const { dx.add(rotated(dy, -1)); }
};

}  // namespace

Tensor rotary(const Tensor& x, std::span<const std::int32_t> positions,
              const RotaryOptions& options) {
  require_defined("rotary", x.value());
  const auto& [size, columns, pairs, base] = options;
  if (x.shape().rank() != 2) fail("[rotary] expected x [rows, d], got {}", x.shape());
  if (size < 2 || size % 2 != 0)
    fail("[rotary] expected heads of an even size of at least 2, got {}", size);
  if (columns < 0 || columns > x.shape()[1] || columns % size != 0)
    fail("[rotary] expected whole heads of size {} within {}, got {} columns", size, x.shape(),
         columns);
  if (!(base > 0)) fail("[rotary] expected a base above 0, got {}", base);
  if (static_cast<std::int64_t>(positions.size()) != x.shape()[0])
    fail("[rotary] expected one position per row ({} in all), got {}", x.shape()[0],
         positions.size());
  if (std::ranges::any_of(positions, [](std::int32_t p) { return p < 0; }))
    fail("[rotary] expected positions of at least 0, got {}", *std::ranges::min_element(positions));
  return apply(Rotary{options, {positions.begin(), positions.end()}}, x);
}

void rotate_head(double* head, std::int64_t position, double direction,
                 const RotaryOptions& options) {
  std::vector<double> cosine, sine;
  for (std::int64_t i = 0; i < options.size / 2; ++i) {
    const double angle = static_cast<double>(position) * rate_of(i, options.size, options.base);
    cosine.push_back(std::cos(angle));
    sine.push_back(std::sin(angle));
  }
  rotate_one<double>(head, head, cosine.data(), sine.data(), direction, options);
}

std::string rotation_formula(const RotaryOptions& options) {
  return fmt::format("columns {} rotated by i θ_k, θ_k = {:g}^(−2k / {})",
                     options.pairs == RotaryPairs::halves
                         ? fmt::format("k and k + {}", options.size / 2)
                         : "2k and 2k + 1",
                     options.base, options.size);
}

HEED_END
