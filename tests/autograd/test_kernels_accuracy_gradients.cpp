/// Compares gradients in float at finite inputs with references in long double. They must be finite
/// and within 4 units in the last place of the exact gradient or, where its terms cancel, of the
/// largest term (accuracy.h). The inputs of a gradient kernel, such as y of softmax, count as
/// exact. Built for float only; in double, gradients are compared with finite differences
/// (test_op_table.cpp).
#include "accuracy.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/fast/rows.h"
#include "autograd/kernels/fast/unary_names.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_accuracy_gradients)
using kernels::UnaryFunction;

namespace {

/// Calls body(x, n) for each row x of n finite values.
template <class Body>
void for_each_finite_row(const Body& body) {
  std::int64_t rows = 0;
  for (const Row& x : test_rows()) {
    if (!all_finite(x)) continue;
    body(x, static_cast<std::int64_t>(x.size()));
    ++rows;
  }
  BOOST_CHECK_GT(rows, 100);
}

/// g = dy ⊙ gain of a row, and the terms that all values of a norm's gradient share.
struct ExactNormGradient {
  ExactNorm norm;
  bool centred;
  std::vector<big> g;
  big mean_g = 0, mean_gz = 0, root, largest_g = 0, largest_z = 0;

  ExactNormGradient(const Row& x, const Row& dy, const Row& gain, real eps, bool is_centred)
      : norm(x, eps), centred(is_centred), root(centred ? norm.layer_root() : norm.rms_root()) {
    const auto n = static_cast<big>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      g.push_back(big{dy[i]} * gain[i]);
      if (centred) mean_g += g[i] / n;
      mean_gz += g[i] * z(i) / n;
      largest_g = std::max(largest_g, std::abs(g[i]));
      largest_z = std::max(largest_z, std::abs(z(i)));
    }
  }
  big z(std::size_t i) const { return centred ? norm.layer(i) : norm.rms(i); }
  big dx(std::size_t i) const { return root * (g[i] - mean_g - z(i) * mean_gz); }
  /// The largest term of dx[i]. rstd is stored as a float, so each term may be off by a unit in its
  /// last place.
  big largest_term(std::size_t i) const {
    return root * std::max({std::abs(g[i]), std::abs(mean_g), std::abs(z(i) * mean_gz)});
  }
  /// The slack for the means of x, g and g ⊙ x̂, which are computed in double.
  big slack(std::size_t i) const {
    return in_sum * root * largest_g * (1 + std::abs(z(i)) * largest_z) * (1 + largest_z);
  }
};

void check_norm_gradient(MaxError& worst, const Row& dx, const ExactNormGradient& exact) {
  for (std::size_t i = 0; i < dx.size(); ++i)
    worst.check(dx[i], exact.dx(i), static_cast<double>(i), exact.slack(i), exact.largest_term(i));
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_softmax_and_log_softmax_are_accurate) {
  for_each_target([](const std::string& target) {
    MaxError plain("gradient of softmax " + target), logs("gradient of log-softmax " + target);
    for_each_finite_row([&](const Row& x, std::int64_t n) {
      Row y(x.size()), log_y(x.size()), dx(x.size()), log_dx(x.size());
      const Row dy = normal_values(n, n % 2 ? 1 : 1e30, 4);
      kernels::softmax_row(x.data(), y.data(), n);
      kernels::log_softmax_row(x.data(), log_y.data(), n);
      kernels::softmax_row_grad(y.data(), dy.data(), dx.data(), n);
      kernels::log_softmax_row_grad(log_y.data(), dy.data(), log_dx.data(), n);
      big inner = 0, sizes = 0, total = 0, all = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        inner += big{y[i]} * dy[i];
        sizes += std::abs(big{y[i]} * dy[i]);
        total += dy[i];
        all += std::abs(big{dy[i]});
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        const big p = std::exp(big{log_y[i]});
        plain.check(dx[i], y[i] * (dy[i] - inner), x[i],
                    in_sum * y[i] * std::max(sizes, std::abs(big{dy[i]})));
        logs.check(log_dx[i], dy[i] - p * total, x[i],
                   in_sum * std::max(p * all, std::abs(big{dy[i]})));
      }
    });
  });
}

// The gradient is scale · (p − target_p). With smoothing, the error is measured in units in the
// last place of scale · max(p, target_p), because p is rounded to float.
BOOST_AUTO_TEST_CASE(gradients_of_cross_entropy_are_accurate) {
  for_each_target([](const std::string& target) {
    MaxError hard("gradient of cross-entropy " + target),
        soft("gradient of smoothed cross-entropy " + target);
    for_each_finite_row([&](const Row& x, std::int64_t n) {
      const ExactRow exact(x);
      for (const std::size_t t : {std::size_t{0}, x.size() / 2, exact.largest}) {
        for (const real smoothing : {real(0), real(0.1)}) {
          const real scale = real(1) / 3;
          Row dx = x;
          kernels::cross_entropy_row(dx.data(), n, static_cast<std::int32_t>(t), smoothing, scale,
                                     true);
          const big share = big{smoothing} / static_cast<big>(n);
          for (std::size_t j = 0; j < x.size(); ++j) {
            const big p = exact.softmax(x[j]), target_p = share + (j == t ? 1 - big{smoothing} : 0);
            // If the target has the largest p, p − 1 is computed without cancellation.
            const big g = j == t && j == exact.largest
                              ? smoothing - exact.rest / (1 + exact.rest) - share
                              : p - target_p;
            if (smoothing == 0) {
              hard.check(dx[j], scale * g, x[j]);
            } else {
              soft.check(dx[j], scale * g, x[j], 0, scale * std::max(p, target_p));
            }
          }
        }
      }
    });
  });
}

BOOST_AUTO_TEST_CASE(gradients_of_norms_are_accurate) {
  const real eps = real(1e-5);
  for_each_target([&](const std::string& target) {
    MaxError layer("gradient of layer norm " + target), rms("gradient of RMS norm " + target);
    for_each_finite_row([&](const Row& x, std::int64_t n) {
      const Row dy = normal_values(n, 1, 4), gain = normal_values(n, 1, 5);
      Row y(x.size());
      real mean = 0, rstd = 0, rrms = 0;
      kernels::layer_norm(x.data(), gain.data(), nullptr, eps, y.data(), &mean, &rstd, 1, n);
      kernels::layer_norm_grad(x.data(), gain.data(), &mean, &rstd, dy.data(), y.data(), nullptr,
                               nullptr, 1, n);
      check_norm_gradient(layer, y, {x, dy, gain, eps, true});
      kernels::rms_norm(x.data(), gain.data(), eps, y.data(), &rrms, 1, n);
      kernels::rms_norm_grad(x.data(), gain.data(), &rrms, dy.data(), y.data(), nullptr, 1, n);
      check_norm_gradient(rms, y, {x, dy, gain, eps, false});
    });
  });
}

// The deviations in these rows are smaller than one unit in the last place of the mean in float.
BOOST_AUTO_TEST_CASE(gradients_of_layer_norm_of_rows_far_from_zero_are_accurate) {
  const real eps = real(1e-12);
  for_each_target([&](const std::string& target) {
    MaxError layer("gradient of layer norm far from 0 " + target);
    for (const std::int64_t n : {2, 5, 16, 33, 512}) {
      const Row dy = normal_values(n, 1, 4), gain = normal_values(n, 1, 5);
      Row x(dy.size(), real(10000)), y(x.size());
      for (std::size_t i = 0; i < x.size(); i += 3) x[i] = std::nextafter(x[i], inf);
      real mean = 0, rstd = 0;
      kernels::layer_norm(x.data(), nullptr, nullptr, eps, y.data(), &mean, &rstd, 1, n);
      kernels::layer_norm_grad(x.data(), gain.data(), &mean, &rstd, dy.data(), y.data(), nullptr,
                               nullptr, 1, n);
      check_norm_gradient(layer, y, {x, dy, gain, eps, true});
    }
  });
}

// With 30,001 rows, as in a large batch, the errors of sums in float would exceed 4 units.
BOOST_AUTO_TEST_CASE(gradients_of_gain_and_bias_over_many_rows_are_accurate) {
  const std::int64_t rows = 30001, cols = 5;
  const real eps = real(1e-5);
  Row x = normal_values(rows * cols, 1, 1);
  const Row dy = normal_values(rows * cols, 1, 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += i % 2 ? real(1000) : dy[i];
  std::vector<big> expected_gain(cols), expected_bias(cols), expected_rms(cols), largest(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const ExactNorm exact(Row(x.begin() + r * cols, x.begin() + (r + 1) * cols), eps);
    for (std::size_t c = 0; c < expected_gain.size(); ++c) {
      const big d = dy[static_cast<std::size_t>(r * cols) + c];
      expected_gain[c] += d * exact.layer(c);
      expected_rms[c] += d * exact.rms(c);
      expected_bias[c] += d;
      largest[c] = std::max(largest[c], std::abs(d) * std::max(big{1}, std::abs(exact.layer(c))));
    }
  }
  for_each_target([&](const std::string& target) {
    MaxError gains("gradient of gain " + target), biases("gradient of bias " + target),
        rms("gradient of RMS norm's gain " + target);
    Row y(x.size()), mean(rows), rstd(rows), rrms(rows), dgain(cols), dbias(cols), drms(cols);
    kernels::layer_norm(x.data(), nullptr, nullptr, eps, y.data(), mean.data(), rstd.data(), rows,
                        cols);
    kernels::layer_norm_grad(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), nullptr,
                             dgain.data(), dbias.data(), rows, cols);
    kernels::rms_norm(x.data(), nullptr, eps, y.data(), rrms.data(), rows, cols);
    kernels::rms_norm_grad(x.data(), nullptr, rrms.data(), dy.data(), nullptr, drms.data(), rows,
                           cols);
    for (std::size_t c = 0; c < dgain.size(); ++c) {
      gains.check(dgain[c], expected_gain[c], static_cast<double>(c), 0, largest[c]);
      biases.check(dbias[c], expected_bias[c], static_cast<double>(c), in_sum * rows);
      rms.check(drms[c], expected_rms[c], static_cast<double>(c), 0, largest[c]);
    }
  });
}

// At the ends of float's range, the difference of two values may overflow.
BOOST_AUTO_TEST_CASE(finite_inputs_have_finite_gradients) {
  const Row ends = {Limits::max(), -Limits::max(),       Limits::max(),
                    Limits::min(), Limits::denorm_min(), 0,
                    real(-1e38),   -Limits::max(),       Limits::max()};
  for_each_target([&](const std::string&) {
    for (std::int64_t n = 1; n <= static_cast<std::int64_t>(ends.size()); ++n) {
      const Row dy = normal_values(n, 1, 4);
      real mean = 0, rstd = 0;
      Row x(ends.begin(), ends.begin() + n), y(x.size()), dx(x.size()), dgain(x.size());
      const auto finite = [&](const char* of, const Row& g) {
        BOOST_CHECK_MESSAGE(all_finite(g),
                            "the gradient of " << of << " is not finite; row length: " << n);
      };
      kernels::layer_norm(x.data(), nullptr, nullptr, real(1e-5), y.data(), &mean, &rstd, 1, n);
      kernels::layer_norm_grad(x.data(), nullptr, &mean, &rstd, dy.data(), dx.data(), dgain.data(),
                               nullptr, 1, n);
      finite("layer norm", dx);
      finite("layer norm's gain", dgain);
      kernels::rms_norm(x.data(), nullptr, real(1e-5), y.data(), &rstd, 1, n);
      kernels::rms_norm_grad(x.data(), nullptr, &rstd, dy.data(), dx.data(), nullptr, 1, n);
      finite("RMS norm", dx);
      kernels::softmax_row(x.data(), y.data(), n);
      kernels::softmax_row_grad(y.data(), dy.data(), dx.data(), n);
      finite("softmax", dx);
      kernels::log_softmax_row(x.data(), y.data(), n);
      kernels::log_softmax_row_grad(y.data(), dy.data(), dx.data(), n);
      finite("log-softmax", dx);
      for (std::size_t k = 0; k <= activation_count; ++k) {  // the activations and neg
        const UnaryFunction f = static_cast<UnaryFunction>(k);
        kernels::unary(f, x.data(), y.data(), n);
        kernels::unary_grad(f, x.data(), y.data(), dy.data(), dx.data(), n);
        finite("a unary function", dx);
      }
      kernels::cross_entropy_row(x.data(), n, 0, real(0.1), 1, true);
      finite("cross-entropy", x);
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
