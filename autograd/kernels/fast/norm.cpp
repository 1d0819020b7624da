#include <vector>

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"
#include "autograd/kernels/rows.h"
#include "autograd/memory/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/norm.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// The forward passes use double. It costs little more than float, because memory is the bottleneck,
// and the results are accurate for rows far from 0, for values of 1e38, and if x̂ · gain and bias
// cancel.

HWY_INLINE double mean_of(const real* x, std::int64_t n) {
  const double count = static_cast<double>(n);
  double mu = wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR { return io.load(x + i); }) / count;
#ifdef HEED_DOUBLE
  // The sum of doubles, and thus mu, is rounded. Adding the mean of the deviations corrects mu, so
  // that equal values have variance 0.
  mu += wide_sum(n, [=](std::int64_t i, auto io)
                        HWY_ATTR { return hn::Sub(io.load(x + i), set_wide(mu)); }) /
        count;
#endif
  return mu;
}

/// Layer norm if `centred`; RMS norm subtracts no mean and has no bias.
template <bool centred>
HWY_INLINE void norm(const real* x, const real* gain, const real* bias, real eps, real* y,
                     real* mean, real* rstd, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double mu = centred ? mean_of(x, cols) : 0;
    const auto deviation = [=](std::int64_t c, auto io) HWY_ATTR {
      return centred ? hn::Sub(io.load(x + c), set_wide(mu)) : io.load(x + c);
    };
    const double squares = wide_sum(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      const Wide v = deviation(c, io);
      return hn::Mul(v, v);
    });
    const double root = plain::reciprocal_root(squares / static_cast<double>(cols) + eps);
    if (std::isnan(root) || root == 0) {  // NaN, infinity or overflow; or variance + eps = 0
      centred ? plain::layer_norm(x, gain, bias, eps, y, mean + r, rstd + r, 1, cols)
              : plain::rms_norm(x, gain, eps, y, rstd + r, 1, cols);
      continue;
    }
    each_wide(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      Wide v = hn::Mul(deviation(c, io), set_wide(root));
      if (gain) v = hn::Mul(v, io.load(gain + c));
      if (bias) v = hn::Add(v, io.load(bias + c));
      io.store(v, y + c);
    });
    if (centred) mean[r] = static_cast<real>(mu);
    rstd[r] = static_cast<real>(root);
  }
}

void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols) {
  norm<true>(x, gain, bias, eps, y, mean, rstd, rows, cols);
}
void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols) {
  norm<false>(x, gain, nullptr, eps, y, nullptr, rrms, rows, cols);
}

/// The means in the gradient of a row, where g = dy ⊙ gain: `x` is the mean of x, recomputed in
/// double; `g` is mean(g); `gz` is mean(g ⊙ x̂). RMS norm subtracts no mean, so its `x` and `g` are 0.
struct RowMeans {
  double x = 0, g = 0, gz = 0;
};

template <class Io>
HWY_INLINE Wide gained(const real* dy, const real* gain, std::int64_t c, Io io) {
  return gain ? hn::Mul(io.load(dy + c), io.load(gain + c)) : io.load(dy + c);
}

template <bool centred>
HWY_INLINE RowMeans row_means(const real* x, const real* gain, double mean, double rstd,
                              const real* dy, std::int64_t cols) {
  const double scale = 1 / static_cast<double>(cols);
  if constexpr (!centred) {
    const double gx = wide_sum(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      return hn::Mul(gained(dy, gain, c, io), io.load(x + c));
    });
    return {0, 0, scale * rstd * gx};
  }
  const auto [rest, g, gz] = wide_sums<3>(cols, [=](std::int64_t c, auto io, Wide(&v)[3]) HWY_ATTR {
    v[0] = hn::Sub(io.load(x + c), set_wide(mean));
    v[1] = gained(dy, gain, c, io);
    v[2] = hn::Mul(v[1], v[0]);
  });
  return {mean + scale * rest, scale * g, scale * rstd * (gz - scale * rest * g)};
}

/// One row of dx = rstd (g − mean(g) − x̂ mean(g ⊙ x̂)), computed in double.
HWY_INLINE void norm_dx(const real* x, const real* gain, RowMeans mean, double rstd, const real* dy,
                        real* dx, std::int64_t cols) {
  each_wide(cols, [=](std::int64_t c, auto io) HWY_ATTR {
    const Wide z = hn::Mul(hn::Sub(io.load(x + c), set_wide(mean.x)), set_wide(rstd));
    const Wide v = hn::Sub(gained(dy, gain, c, io), set_wide(mean.g));
    io.store(hn::Mul(set_wide(rstd), hn::NegMulAdd(z, set_wide(mean.gz), v)), dx + c);
  });
}

/// Adds `rows` rows (four or one) to the column sums: dgain += Σ_r dy ⊙ x̂ and, if `centred`,
/// dbias += Σ_r dy. The sums are read and written only once for all these rows.
template <int rows, bool centred>
HWY_INLINE void norm_dgain(const real* x, const RowMeans* mean, const real* rstd, const real* dy,
                           double* dgain, double* dbias, std::int64_t cols) {
  each_wide(cols, [=](std::int64_t c, auto io) HWY_ATTR {
    Wide sum_gain = io.load_double(dgain + c), sum_bias = io.load_double(dbias + c);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Wide d = io.load(dy + r * cols + c);
      Wide z = io.load(x + r * cols + c);
      if constexpr (centred) z = hn::Sub(z, set_wide(mean[r].x));
      sum_gain = hn::MulAdd(d, hn::Mul(z, set_wide(rstd[r])), sum_gain);
      if constexpr (centred) sum_bias = hn::Add(d, sum_bias);
    }
    io.store_double(sum_gain, dgain + c);
    if constexpr (centred) io.store_double(sum_bias, dbias + c);
  });
}

HWY_INLINE void add_to(real* target, const double* sums, std::int64_t n) {
  each_wide(n, [=](std::int64_t c, auto io) HWY_ATTR {
    io.store(hn::Add(io.load(target + c), io.load_double(sums + c)), target + c);
  });
}

template <bool centred>
HWY_INLINE void norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                          const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                          std::int64_t cols) {
  const bool columns = dgain || dbias;
  std::vector<double, BlockAllocator<double>> sums(
      columns ? static_cast<std::size_t>((1 + centred) * cols) : 0);
  double* const sum_gain = sums.data();
  double* const sum_bias = sum_gain + (columns && centred ? cols : 0);
  for (std::int64_t r = 0; r < rows;) {
    const bool four = r + 4 <= rows;
    const std::int64_t step = four ? 4 : 1, at = r * cols;
    RowMeans means[4];
    for (std::int64_t k = 0; k < step; ++k) {
      const std::int64_t row = at + k * cols;
      means[k] =
          row_means<centred>(x + row, gain, centred ? mean[r + k] : 0, rstd[r + k], dy + row, cols);
    }
    // The column sums come first, because dx may be dy.
    if (columns) {
      (four ? norm_dgain<4, centred> : norm_dgain<1, centred>)(x + at, means, rstd + r, dy + at,
                                                               sum_gain, sum_bias, cols);
    }
    for (std::int64_t k = 0; dx && k < step; ++k) {
      const std::int64_t row = at + k * cols;
      norm_dx(x + row, gain, means[k], rstd[r + k], dy + row, dx + row, cols);
    }
    r += step;
  }
  if (dgain) add_to(dgain, sum_gain, cols);
  if (dbias) add_to(dbias, sum_bias, cols);
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
