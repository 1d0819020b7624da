#include "autograd/kernels/fast/plain.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_update)
namespace plain = kernels::plain;

BOOST_AUTO_TEST_CASE(adam_equals_its_scalar_reference) {
  const kernels::AdamStep step{.lr = 1e-3,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-9,
                               .decay = 0.1,
                               .c1 = 1 - 0.9 * 0.9,
                               .c2 = 1 - 0.999 * 0.999,
                               .grad_scale = 0.5};
  for_each_target([&](const std::string&) {
    for (const std::int64_t n : lengths()) {
      std::vector<real> g = normal_values(n, 1e-2, 1), w = normal_values(n, 1, 2),
                        m = normal_values(n, 1e-2, 3), v = normal_values(n, 1e-2, 4);
      for (real& value : v) value *= value;
      if (n > 3) g[3] = 0, m[3] = 0, v[3] = 0;  // the update is 0 / (0 + eps)
      if (n > 5) g[5] = not_a_number;
      Guarded gg(g, 0), gw(w, 1), gm(m, 2), gv(v, 3);
      plain::adam(step, g.data(), w.data(), m.data(), v.data(), n);
      kernels::adam(step, gg.data(), gw.data(), gm.data(), gv.data(), n);
      const double tolerance = 8 * double{Limits::epsilon()};
      check_close(gm.values(), m, tolerance, 1e-2);
      check_close(gv.values(), v, tolerance);
      check_close(gw.values(), w, tolerance, 0.1);
    }
  });
}

BOOST_AUTO_TEST_CASE(adam_subtracts_beta2_from_one_in_double) {
  // After one step from v = 0, v must equal 0.001 g²; 1 − 0.999 in float would be 0.00099999.
  const kernels::AdamStep step{.lr = 1e-3,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .decay = 0,
                               .c1 = 0.1,
                               .c2 = 0.001,
                               .grad_scale = 1};
  real g = 1, w = 0, m = 0, v = 0;
  kernels::adam(step, &g, &w, &m, &v, 1);
  BOOST_CHECK_CLOSE_FRACTION(v, 0.001, 4 * Limits::epsilon());
  // For any gradient much larger than eps, the first step has size lr.
  BOOST_CHECK_CLOSE_FRACTION(w, -1e-3, 1e-6);
}

BOOST_AUTO_TEST_CASE(sgd_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      const std::vector<real> g = normal_values(n, 1, 1);
      std::vector<real> w = normal_values(n, 1, 2), b = normal_values(n, 1, 3);
      Guarded gw(w, 1), gb(b, 2);
      plain::sgd(real(0.1), real(0.9), real(0.01), real(0.5), g.data(), w.data(), b.data(), n);
      kernels::sgd(real(0.1), real(0.9), real(0.01), real(0.5), g.data(), gw.data(), gb.data(), n);
      check_close(gw.values(), w, 4 * double{Limits::epsilon()}, 1);
      check_close(gb.values(), b, 4 * double{Limits::epsilon()}, 1);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_non_finite_weight_is_detected_at_any_index) {
  const kernels::AdamStep step{.lr = 1e-3,
                               .beta1 = 0.9,
                               .beta2 = 0.98,
                               .eps = 1e-9,
                               .decay = 0,
                               .c1 = 0.1,
                               .c2 = 0.02,
                               .grad_scale = 1};
  for_each_target([&](const std::string&) {
    for (const std::int64_t n : lengths()) {
      const auto finite = [&](const std::vector<real>& weights) {
        std::vector<real> g = normal_values(n, 1, 1), w = weights, m(w.size()), v(w.size());
        const bool by_adam = kernels::adam(step, g.data(), w.data(), m.data(), v.data(), n);
        w = weights;
        const bool by_sgd = kernels::sgd(real(0.1), 0, 0, 1, g.data(), w.data(), m.data(), n);
        BOOST_TEST(by_adam == by_sgd);
        return by_adam;
      };
      std::vector<real> weights = normal_values(n, 1, 2);
      if (n > 1) weights[1] = std::numeric_limits<real>::max();
      BOOST_TEST(finite(weights));
      for (const real value : {not_a_number, Limits::infinity(), -Limits::infinity()}) {
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
          if (n == 0) continue;
          std::vector<real> broken = weights;
          broken[static_cast<std::size_t>(at)] = value;
          BOOST_TEST(!finite(broken),
                     "number of values: " << n << ", index of the non-finite value: " << at);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
