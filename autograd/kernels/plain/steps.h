#pragma once
/// Reference implementations of the kernels in dropout.h and update.h.
#include "autograd/kernels/plain/plain.h"

HEED_BEGIN
namespace kernels::plain {

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
