#include "autograd/kernels/fast/plain.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_rows)
namespace plain = kernels::plain;

namespace {

const double epsilon = Limits::epsilon();

/// Rows of n values: random at two scales, equal, fully masked, all +inf, and random with one or
/// two special values (NaN, infinities, huge values, denormals).
std::vector<std::vector<real>> rows_of(std::int64_t n) {
  std::vector<std::vector<real>> rows = {normal_values(n, 1, 1), normal_values(n, 40, 2),
                                         std::vector<real>(n, real(0.1)),
                                         std::vector<real>(n, -inf)};
  const std::vector<real> base = rows[0];
  if (n == 0) return rows;
  const auto at = static_cast<std::size_t>(n / 2);
  for (const real special :
       {-inf, inf, not_a_number, Limits::max(), real(-1e38), Limits::denorm_min()}) {
    rows.push_back(base);
    rows.back()[at] = special;
  }
  rows.push_back(base);  // a NaN after +inf, which a search for the maximum may miss
  rows.back()[0] = inf;
  rows.back()[static_cast<std::size_t>(n - 1)] = not_a_number;
  rows.push_back(std::vector<real>(n, inf));
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(softmax_and_its_gradient_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      for (const std::vector<real>& x : rows_of(n)) {
        std::vector<real> expected(x.size()), dx(x.size());
        const real expected_log = plain::softmax_row(x.data(), expected.data(), n);
        Guarded in(x, 1), out(x, 2);
        const real log_sum = kernels::softmax_row(in.data(), out.data(), n);
        BOOST_CHECK_MESSAGE(close(log_sum, expected_log, 8 * epsilon, 0.01),
                            log_sum << ", expected " << expected_log);
        BOOST_CHECK(same(kernels::log_sum_exp_row(in.data(), n), log_sum));
        check_close(out.values(), expected, in_float ? 4 * epsilon : 1e-13);
        BOOST_CHECK(same(kernels::softmax_row(in.data(), in.data(), n), log_sum));  // runs in place
        check_same(in.values(), out.values());

        const std::vector<real> dy = normal_values(n, 1, 3);
        plain::softmax_row_grad(expected.data(), dy.data(), dx.data(), n);
        Guarded grad(dy, 3);
        kernels::softmax_row_grad(expected.data(), grad.data(), grad.data(), n);
        check_close(grad.values(), dx, 8 * epsilon, 1);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(softmax_of_a_fully_masked_row_is_zero) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : {0, 1, 17, 100}) {
      std::vector<real> x(static_cast<std::size_t>(n), -inf), zeros(x.size(), 0);
      BOOST_CHECK_EQUAL(kernels::softmax_row(x.data(), x.data(), n), -inf);
      check_same(x, zeros);
    }
  });
}

BOOST_AUTO_TEST_CASE(cross_entropy_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      if (n == 0) continue;
      for (const std::vector<real>& x : rows_of(n)) {
        for (const std::int64_t target : {std::int64_t{0}, n / 2, n - 1}) {
          for (const real smoothing : {real(0), real(0.1)}) {
            std::vector<real> expected = x;
            const auto t = static_cast<std::int32_t>(target);
            const auto twin =
                plain::cross_entropy_row(expected.data(), n, t, smoothing, real(0.25), true);
            Guarded logits(x, 1);
            const auto bare =
                kernels::cross_entropy_row(logits.data(), n, t, smoothing, real(0.25), false);
            check_same(logits.values(), x);  // unchanged if no gradient is requested
            const auto fast =
                kernels::cross_entropy_row(logits.data(), n, t, smoothing, real(0.25), true);
            check_close(logits.values(), expected, in_float ? 4 * epsilon : 1e-13,
                        in_float ? 0.25 * smoothing / static_cast<double>(n) + 1e-9 : 0.25);
            const double tolerance = in_float ? 2 * epsilon : 1e-13;
            BOOST_CHECK(fast.correct == twin.correct && bare.correct == twin.correct);
            const auto agree = [&](double a, double b) {
              return (std::isnan(a) && std::isnan(b)) || a == b ||
                     std::abs(a - b) <= tolerance * std::abs(b);
            };
            BOOST_CHECK_MESSAGE(agree(fast.loss, twin.loss),
                                fast.loss << ", expected " << twin.loss);
            BOOST_CHECK_MESSAGE(agree(fast.nll, twin.nll), fast.nll << ", expected " << twin.nll);
            BOOST_CHECK(agree(fast.loss, bare.loss) && agree(fast.nll, bare.nll));
          }
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(symmetric_kl_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      if (n == 0) continue;
      std::vector<real> log_p(static_cast<std::size_t>(n)), log_q = log_p;
      const std::vector<real> x = normal_values(n, 2, 1), y = normal_values(n, 2, 2);
      plain::log_softmax_row(x.data(), log_p.data(), n);
      plain::log_softmax_row(y.data(), log_q.data(), n);
      std::vector<real> expected_p = log_p, expected_q = log_q;
      const double expected =
          plain::symmetric_kl_row(expected_p.data(), expected_q.data(), n, real(0.5), true);
      Guarded p(log_p, 1), q(log_q, 1);
      const double tolerance = in_float ? 1e-5 : 1e-12;
      BOOST_CHECK_SMALL(
          kernels::symmetric_kl_row(p.data(), q.data(), n, real(0.5), false) - expected, tolerance);
      check_same(p.values(), log_p);  // unchanged if no gradient is requested
      BOOST_CHECK_SMALL(
          kernels::symmetric_kl_row(p.data(), q.data(), n, real(0.5), true) - expected, tolerance);
      check_close(p.values(), expected_p, in_float ? 1e-5 : 1e-12, 1);
      check_close(q.values(), expected_q, in_float ? 1e-5 : 1e-12, 1);
    }
  });
}

BOOST_AUTO_TEST_CASE(the_first_of_equal_logits_is_the_prediction) {
  for_each_target([](const std::string&) {
    std::vector<real> x(50, 1);
    x[20] = x[30] = 2;
    for (std::int32_t t = 0; t < 50; ++t) {
      BOOST_CHECK_EQUAL(kernels::cross_entropy_row(x.data(), 50, t, 0, 1, false).correct, t == 20);
    }
    x[10] = not_a_number;
    BOOST_CHECK(!kernels::cross_entropy_row(x.data(), 50, 20, 0, 1, false).correct);
  });
}

BOOST_AUTO_TEST_CASE(a_logit_of_plus_infinity_makes_the_loss_infinite_but_its_gradient_finite) {
  for_each_target([](const std::string&) {
    for (const std::size_t at : {0, 7, 49}) {
      std::vector<real> x(50, 1);
      x[at] = inf;
      for (const std::int32_t target : {0, 7, 20}) {
        std::vector<real> logits = x;
        const auto row = kernels::cross_entropy_row(logits.data(), 50, target, 0, 1, true);
        BOOST_CHECK_EQUAL(row.loss, std::numeric_limits<double>::infinity());
        for (const real g : logits) BOOST_CHECK(std::isfinite(g));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(norms_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t cols : lengths()) {
      if (cols == 0) continue;
      std::vector<real> x;
      for (const std::vector<real>& row : rows_of(cols)) x.insert(x.end(), row.begin(), row.end());
      const auto rows = static_cast<std::int64_t>(x.size()) / cols;
      const std::vector<real> gain = normal_values(cols, 1, 5), bias = normal_values(cols, 1, 6);
      const std::vector<real> none(static_cast<std::size_t>(rows));
      for (const bool affine : {true, false}) {
        const real *g = affine ? gain.data() : nullptr, *b = affine ? bias.data() : nullptr;
        std::vector<real> expected(x.size()), mean = none, rstd = none, rrms = none;
        Guarded y(x, 2), got_mean(none), got_rstd(none), got_rrms(none);
        plain::layer_norm(x.data(), g, b, real(1e-5), expected.data(), mean.data(), rstd.data(),
                          rows, cols);
        kernels::layer_norm(y.data(), g, b, real(1e-5), y.data(), got_mean.data(), got_rstd.data(),
                            rows, cols);
        const double tolerance = in_float ? 2 * epsilon : 1e-12;
        check_close(y.values(), expected, tolerance, in_float ? 0 : 10);
        check_close(got_mean.values(), mean, tolerance, in_float ? 0 : 10);
        check_close(got_rstd.values(), rstd, tolerance);

        Guarded z(x, 3);
        plain::rms_norm(x.data(), g, real(1e-5), expected.data(), rrms.data(), rows, cols);
        kernels::rms_norm(z.data(), g, real(1e-5), z.data(), got_rrms.data(), rows, cols);
        check_close(z.values(), expected, tolerance);
        check_close(got_rrms.values(), rrms, tolerance);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(norm_gradients_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t cols : {1, 2, 7, 16, 33, 64, 130, 512}) {
      for (const std::int64_t rows : {1, 3, 4, 5, 9}) {
        const std::vector<real> x = normal_values(rows * cols, 2, 1),
                                dy = normal_values(rows * cols, 1, 2);
        const std::vector<real> gain = normal_values(cols, 1, 5), start = normal_values(cols, 1, 6);
        std::vector<real> y(x.size()), mean(static_cast<std::size_t>(rows)), rstd = mean,
                                                                             rrms = mean;
        plain::layer_norm(x.data(), nullptr, nullptr, real(1e-5), y.data(), mean.data(),
                          rstd.data(), rows, cols);
        plain::rms_norm(x.data(), nullptr, real(1e-5), y.data(), rrms.data(), rows, cols);
        const double size = cols == 1 ? 1e4 : 20;  // a row of one value has rstd = 1/√eps
        for (const real* g : {gain.data(), static_cast<const real*>(nullptr)}) {
          std::vector<real> dx(x.size()), dgain = start, dbias = start;
          Guarded got(dy, 1), got_gain(start, 2), got_bias(start, 3);
          plain::layer_norm_grad(x.data(), g, mean.data(), rstd.data(), dy.data(), dx.data(),
                                 dgain.data(), dbias.data(), rows, cols);
          kernels::layer_norm_grad(x.data(), g, mean.data(), rstd.data(), got.data(), got.data(),
                                   got_gain.data(), got_bias.data(), rows, cols);
          check_close(got.values(), dx, 4 * epsilon, size);
          check_close(got_gain.values(), dgain, 4 * epsilon, 20);
          check_close(got_bias.values(), dbias, 4 * epsilon, 20);

          std::vector<real> dx2(x.size()), dgain2 = start;
          Guarded got2(dy, 2), got_gain2(start, 3);
          plain::rms_norm_grad(x.data(), g, rrms.data(), dy.data(), dx2.data(), dgain2.data(), rows,
                               cols);
          kernels::rms_norm_grad(x.data(), g, rrms.data(), got2.data(), got2.data(),
                                 got_gain2.data(), rows, cols);
          check_close(got2.values(), dx2, 4 * epsilon, size);
          check_close(got_gain2.values(), dgain2, 4 * epsilon, 20);
        }
        // Each output may be null.
        Guarded only_bias(start);
        std::vector<real> dbias = start;
        plain::layer_norm_grad(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), nullptr,
                               nullptr, dbias.data(), rows, cols);
        kernels::layer_norm_grad(x.data(), nullptr, mean.data(), rstd.data(), dy.data(), nullptr,
                                 nullptr, only_bias.data(), rows, cols);
        check_close(only_bias.values(), dbias, 4 * epsilon, 20);
      }
    }
  });
}

// The normalised row is finite even if x has an infinity, so the gradient must reveal it.
BOOST_AUTO_TEST_CASE(the_gradient_of_a_norm_of_a_row_with_an_infinity_is_nan) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : {2, 5, 16, 40}) {
      std::vector<real> x = normal_values(n, 1, 1), y(x.size()), z(x.size());
      const std::vector<real> dy = normal_values(n, 1, 2);
      x[static_cast<std::size_t>(n / 2)] = -inf;
      real mean = 0, rstd = 0, rrms = 0;
      kernels::layer_norm(x.data(), nullptr, nullptr, real(1e-5), y.data(), &mean, &rstd, 1, n);
      kernels::rms_norm(x.data(), nullptr, real(1e-5), z.data(), &rrms, 1, n);
      for (const std::vector<real>* out : {&y, &z}) {
        for (const real v : *out) BOOST_CHECK(std::isfinite(v));
      }
      kernels::layer_norm_grad(x.data(), nullptr, &mean, &rstd, dy.data(), y.data(), nullptr,
                               nullptr, 1, n);
      kernels::rms_norm_grad(x.data(), nullptr, &rrms, dy.data(), z.data(), nullptr, 1, n);
      BOOST_CHECK(std::isnan(y[0]) && std::isnan(z[0]));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_fully_masked_row_counts_no_correct_prediction) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : {1, 5, 40}) {
      std::vector<real> x(static_cast<std::size_t>(n), -inf);
      for (const std::int64_t target : {std::int64_t{0}, n - 1}) {
        const kernels::RowLoss row =
            kernels::cross_entropy_row(x.data(), n, static_cast<std::int32_t>(target), 0, 1, false);
        BOOST_CHECK(!row.correct);
        BOOST_CHECK_EQUAL(row.loss, std::numeric_limits<double>::infinity());
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
