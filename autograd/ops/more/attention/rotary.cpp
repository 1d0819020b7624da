#include "autograd/ops/more/attention/rotary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops/shared/check.h"

HEED_BEGIN

namespace {

/// [positions, size]: row p contains cos(p · base^(−2i/size)) for i from 0 to size/2 − 1, then the
/// sines of the same angles.
Array turns(std::int64_t positions, std::int64_t size, double base) {
  Array table({positions, size});
  const std::int64_t half = size / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double rate = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
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
    const std::int64_t size = options.size, half = size / 2;
    const bool halves = options.pairs == RotaryPairs::halves;
    const std::int32_t last = positions.empty() ? 0 : *std::ranges::max_element(positions);
    const Array table = turns_up_to(last + 1, size, options.base);
    Array y(x.shape());
    for (std::int64_t r = 0; r < x.rows(); ++r) {
      const real* const cosine = table.row(positions[r]);
      const real* const sine = cosine + half;
      for (std::int64_t c = 0; c < options.columns; c += size) {
        const real* const from = x.row(r) + c;
        real* const to = y.row(r) + c;
        halves ? rotate<1>(from, from + half, to, to + half, cosine, sine, direction, half)
               : rotate<2>(from, from + 1, to, to + 1, cosine, sine, direction, half);
      }
      std::copy_n(x.row(r) + options.columns, x.cols() - options.columns,
                  y.row(r) + options.columns);
    }
    return y;
  }
  /// Rotates n pairs. The first values of consecutive pairs are `step` apart, as are the second
  /// values.
  template <std::int64_t step>
  static void rotate(const real* a, const real* b, real* ya, real* yb, const real* cosine,
                     const real* sine, real direction, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const real xa = a[i * step], xb = b[i * step], s = direction * sine[i];
      ya[i * step] = xa * cosine[i] - xb * s;
      yb[i * step] = xb * cosine[i] + xa * s;
    }
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

HEED_END
