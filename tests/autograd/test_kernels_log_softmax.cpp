#include "accuracy.h"
#include "autograd/kernels/fast/plain.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_log_softmax)
namespace plain = kernels::plain;

namespace {

const double epsilon = Limits::epsilon();

/// Rows of n values: random, fully masked, and random with masked values, +inf, NaN, huge values or
/// denormals.
std::vector<Row> rows_of(std::int64_t n) {
  std::vector<Row> rows = {normal_values(n, 1, 1), normal_values(n, 40, 2), Row(n, -inf)};
  if (n == 0) return rows;
  for (const real special : {-inf, inf, not_a_number, real(1e38), Limits::denorm_min()}) {
    rows.push_back(rows[0]);
    for (std::size_t i = 0; i < rows.back().size(); i += 3) rows.back()[i] = special;
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(log_softmax_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      for (const Row& x : rows_of(n)) {
        Row expected(x.size());
        plain::log_softmax_row(x.data(), expected.data(), n);
        Guarded in(x, 1), out(x, 2);
        kernels::log_softmax_row(in.data(), out.data(), n);
        check_close(out.values(), expected, in_float ? 4 * epsilon : 1e-13);
        kernels::log_softmax_row(in.data(), in.data(), n);
        check_same(in.values(), out.values());
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(the_gradient_of_log_softmax_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      for (const Row& x : rows_of(n)) {
        Row y(x.size()), expected(x.size());
        const Row dy = normal_values(n, 1, 3);
        plain::log_softmax_row(x.data(), y.data(), n);
        plain::log_softmax_row_grad(y.data(), dy.data(), expected.data(), n);
        Guarded dx(dy, 3);
        kernels::log_softmax_row_grad(y.data(), dx.data(), dx.data(), n);
        // The scalar reference adds the n values one by one in double, so in the double build its
        // rounding errors grow with n.
        check_close(dx.values(), expected, 2 * epsilon, in_float ? 1e-5 : static_cast<double>(n));
      }
    }
  });
}

// As in softmax, values of +inf share the probability equally, and all others have probability 0.
BOOST_AUTO_TEST_CASE(values_of_plus_infinity_share_the_probability_of_the_row) {
  for_each_target([](const std::string&) {
    Row x(40, 1), y(40), dx(40);
    x[3] = x[30] = inf;
    kernels::log_softmax_row(x.data(), y.data(), 40);
    for (std::size_t i = 0; i < x.size(); ++i) {
      BOOST_CHECK_EQUAL(y[i], i == 3 || i == 30 ? -std::log(real(2)) : -inf);
    }
    const Row dy(40, 1);
    kernels::log_softmax_row_grad(y.data(), dy.data(), dx.data(), 40);
    for (const real g : dx) BOOST_CHECK_SMALL(g, real(1e-6));
  });
}

BOOST_AUTO_TEST_SUITE_END()
