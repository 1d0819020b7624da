#include "autograd/kernels/plain_rows.h"
#include "autograd/kernels/rows.h"
#include "autograd/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/norm.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "autograd/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// The forward passes work in double, which costs little more than float (memory sets the pace) and
// leaves nothing to chance: rows far from 0, rows of 1e38, gain and bias that cancel.

HWY_INLINE double mean_of(const real* x, std::int64_t n) {
  const double count = static_cast<double>(n);
  double mu = wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR { return io.load(x + i); }) / count;
#ifdef HEED_DOUBLE
  // A sum of doubles rounds; the mean of what is left mends it, so that equal values have no
  // variance.
  mu += wide_sum(n, [=](std::int64_t i, auto io)
                        HWY_ATTR { return hn::Sub(io.load(x + i), set_wide(mu)); }) /
        count;
#endif
  return mu;
}

void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols) {
  const double count = static_cast<double>(cols);
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double mu = mean_of(x, cols);
    const double var = wide_sum(cols,
                                [=](std::int64_t c, auto io) HWY_ATTR {
                                  const Wide v = hn::Sub(io.load(x + c), set_wide(mu));
                                  return hn::Mul(v, v);
                                }) /
                       count;
    const double root = plain::reciprocal_root(var + eps);
    if (std::isnan(root) || root == 0) {  // NaN or infinity in the row, or no variance and eps = 0
      plain::layer_norm(x, gain, bias, eps, y, mean + r, rstd + r, 1, cols);
      continue;
    }
    each_wide(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      Wide v = hn::Mul(hn::Sub(io.load(x + c), set_wide(mu)), set_wide(root));
      if (gain) v = hn::Mul(v, io.load(gain + c));
      if (bias) v = hn::Add(v, io.load(bias + c));
      io.store(v, y + c);
    });
    mean[r] = static_cast<real>(mu);
    rstd[r] = static_cast<real>(root);
  }
}

void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double square = wide_sum(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      const Wide v = io.load(x + c);
      return hn::Mul(v, v);
    });
    const double root = plain::reciprocal_root(square / static_cast<double>(cols) + eps);
    if (std::isnan(root) || root == 0) {
      plain::rms_norm(x, gain, eps, y, rrms + r, 1, cols);
      continue;
    }
    each_wide(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      Wide v = hn::Mul(io.load(x + c), set_wide(root));
      if (gain) v = hn::Mul(v, io.load(gain + c));
      io.store(v, y + c);
    });
    rrms[r] = static_cast<real>(root);
  }
}

/// The rows' part of a gradient: dx = rstd (g − mean(g) − x̂ mean(g ⊙ x̂)), where mean(g) is left out
/// for RMS norm, whose mean is 0 by definition.
template <bool centred>
HWY_INLINE void norm_dx(const real* x, const real* gain, real mean, real rstd, const real* dy,
                        real* dx, std::int64_t cols) {
  const double scale = 1 / static_cast<double>(cols);
  const auto g = [=](std::int64_t c, auto io) HWY_ATTR {
    return gain ? hn::Mul(io.load(dy + c), io.load(gain + c)) : io.load(dy + c);
  };
  const double mean_gz = scale * rstd * wide_sum(cols, [=](std::int64_t c, auto io) HWY_ATTR {
                           return hn::Mul(g(c, io), hn::Sub(io.load(x + c), set_wide(mean)));
                         });
  const double mean_g = centred ? scale * wide_sum(cols, g) : 0;
  each(cols, [=](std::int64_t c, auto io) HWY_ATTR {
    const Vector z = hn::Mul(hn::Sub(io.load(x + c), set(mean)), set(rstd));
    const Vector v = hn::Sub(g(c, io), set(static_cast<real>(mean_g)));
    io.store(hn::Mul(set(rstd), hn::NegMulAdd(z, set(static_cast<real>(mean_gz)), v)), dx + c);
  });
}

/// The columns' part: dgain += Σ_r dy ⊙ x̂ and dbias += Σ_r dy, for up to four rows at a time, so
/// that the targets are read and written once for four rows.
template <int rows, bool centred>
HWY_INLINE void norm_dgain(const real* x, const real* mean, const real* rstd, const real* dy,
                           real* dgain, real* dbias, std::int64_t cols) {
  each(cols, [=](std::int64_t c, auto io) HWY_ATTR {
    Vector sum_gain = hn::Zero(Tag()), sum_bias = hn::Zero(Tag());
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Vector d = io.load(dy + r * cols + c);
      Vector z = io.load(x + r * cols + c);
      if constexpr (centred) z = hn::Sub(z, set(mean[r]));
      sum_gain = hn::MulAdd(d, hn::Mul(z, set(rstd[r])), sum_gain);
      sum_bias = hn::Add(d, sum_bias);
    }
    if (dgain) io.store(hn::Add(io.load(dgain + c), sum_gain), dgain + c);
    if (dbias) io.store(hn::Add(io.load(dbias + c), sum_bias), dbias + c);
  });
}

template <bool centred>
HWY_INLINE void norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                          const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                          std::int64_t cols) {
  for (std::int64_t r = 0; r < rows;) {
    const bool four = r + 4 <= rows;
    const std::int64_t step = four ? 4 : 1, at = r * cols;
    // First the columns: dx may be dy.
    if (dgain || dbias) {
      (four ? norm_dgain<4, centred> : norm_dgain<1, centred>)(x + at, mean + r, rstd + r, dy + at,
                                                               dgain, dbias, cols);
    }
    for (const std::int64_t end = r + step; r < end; ++r) {
      if (dx)
        norm_dx<centred>(x + r * cols, gain, centred ? mean[r] : 0, rstd[r], dy + r * cols,
                         dx + r * cols, cols);
    }
  }
}

void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                     const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                     std::int64_t cols) {
  norm_grad<true>(x, gain, mean, rstd, dy, dx, dgain, dbias, rows, cols);
}
void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy, real* dx,
                   real* dgain, std::int64_t rows, std::int64_t cols) {
  norm_grad<false>(x, gain, rrms, rrms, dy, dx, dgain, nullptr, rows, cols);
}

#else
using plain::layer_norm;
using plain::layer_norm_grad;
using plain::rms_norm;
using plain::rms_norm_grad;
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(layer_norm);
HWY_EXPORT(layer_norm_grad);
HWY_EXPORT(rms_norm);
HWY_EXPORT(rms_norm_grad);

void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm)(x, gain, bias, eps, y, mean, rstd, rows, cols);
}
void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                     const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                     std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm_grad)(x, gain, mean, rstd, dy, dx, dgain, dbias, rows, cols);
}
void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x, gain, eps, y, rrms, rows, cols);
}
void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy, real* dx,
                   real* dgain, std::int64_t rows, std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rms_norm_grad)(x, gain, rrms, dy, dx, dgain, rows, cols);
}

}  // namespace kernels
HEED_END
#endif
