#include <algorithm>
#include <array>
#include <span>

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/unary_names.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_elementwise)
namespace plain = kernels::plain;
using kernels::UnaryFunction;

namespace {

const auto all_unary_functions = [] {
  std::array<UnaryFunction, unary_function_count> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<UnaryFunction>(i);
  return all;
}();

/// The scalar references compute in double. In the float build, their errors are negligible; in the
/// double build, their errors in gelu's tail are about x² units in the last place.
const double tolerance = in_float ? 5e-7 : 1e-12;

/// n values: difficult ones, then random ones. A short array has difficult values that depend on n.
std::vector<real> inputs(std::int64_t n) {
  std::vector<real> x = awkward_values(), rest = normal_values(n, 3, 7);
  if (n < 200) std::rotate(x.begin(), x.begin() + n % static_cast<std::int64_t>(x.size()), x.end());
  x.insert(x.end(), rest.begin(), rest.end());
  x.resize(static_cast<std::size_t>(n));
  return x;
}

std::vector<real> applied(UnaryFunction f, const std::vector<real>& x) {
  std::vector<real> y(x.size());
  plain::unary(f, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  return y;
}

using Binary = void (*)(const real*, const real*, real*, std::int64_t);

void check_binary(Binary fast, Binary twin) {
  for (const std::int64_t n : lengths()) {
    const std::vector<real> a = inputs(n), b = normal_values(n, 2, 9);
    std::vector<real> expected(a.size());
    twin(a.data(), b.data(), expected.data(), n);
    Guarded x(a, 1), z(b, 2), y(a, 3);
    fast(x.data(), z.data(), y.data(), n);
    check_same(y.values(), expected);
    fast(x.data(), z.data(), x.data(), n);  // runs in place
    check_same(x.values(), expected);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(arithmetic_equals_its_scalar_references) {
  for_each_target([](const std::string&) {
    check_binary(kernels::add, plain::add);
    check_binary(kernels::sub, plain::sub);
    check_binary(kernels::mul, plain::mul);
    check_binary(kernels::div, plain::div);
  });
}

BOOST_AUTO_TEST_CASE(scale_and_axpy_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      const std::vector<real> x = inputs(n), start = normal_values(n, 1, 3);
      std::vector<real> expected(x.size()), sum = start;
      plain::scale(real(1.7), x.data(), expected.data(), n);
      plain::axpy(real(-0.3), x.data(), sum.data(), n);
      Guarded y(x), z(start, 2);
      kernels::axpy(real(-0.3), y.data(), z.data(), n);
      kernels::scale(real(1.7), y.data(), y.data(), n);
      check_same(y.values(), expected);
      check_same(z.values(), sum);
    }
  });
}

BOOST_AUTO_TEST_CASE(unary_functions_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const UnaryFunction f : all_unary_functions) {
      BOOST_TEST_CONTEXT(name_of(f))
      for (const std::int64_t n : lengths()) {
        const std::vector<real> x = inputs(n), expected = applied(f, x);
        Guarded in(x, n % 5), out(expected, n % 3);
        kernels::unary(f, in.data(), out.data(), n);
        check_close(out.values(), expected, tolerance);
        // In place and with another alignment of the output, the result has the same bits.
        kernels::unary(f, in.data(), in.data(), n);
        check_same(in.values(), out.values());
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(unary_gradients_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const UnaryFunction f : all_unary_functions) {
      BOOST_TEST_CONTEXT(name_of(f))
      for (const std::int64_t n : lengths()) {
        const std::vector<real> x = inputs(n), y = applied(f, x), dy = normal_values(n, 1, 5);
        std::vector<real> expected(x.size());
        plain::unary_grad(f, x.data(), y.data(), dy.data(), expected.data(), n);
        Guarded dx(dy, 3);
        kernels::unary_grad(f, kernels::unary_needs_x(f) ? x.data() : nullptr,
                            kernels::unary_needs_y(f) ? y.data() : nullptr, dx.data(), dx.data(),
                            n);
        // f' may be near 0, so errors are relative to the scale of dy, which is 1.
        check_close(dx.values(), expected, 2 * tolerance, 1);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(unary_functions_return_nan_exactly_for_nan_and_outside_their_domain) {
  for_each_target([](const std::string&) {
    const std::vector<real> x = awkward_values();
    const auto n = static_cast<std::int64_t>(x.size());
    for (const UnaryFunction f : all_unary_functions) {
      std::vector<real> y(x.size());
      kernels::unary(f, x.data(), y.data(), n);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool outside = (f == UnaryFunction::log || f == UnaryFunction::sqrt) && x[i] < 0;
        BOOST_CHECK_MESSAGE(std::isnan(y[i]) == (std::isnan(x[i]) || outside),
                            name_of(f) << "(" << x[i] << ") = " << y[i]);
      }
    }
    for (const UnaryFunction f : std::span(all_unary_functions).first(activation_count)) {
      std::vector<real> y(x.size()), one(x.size(), 1), dx(x.size());
      kernels::unary(f, x.data(), y.data(), n);
      kernels::unary_grad(f, x.data(), y.data(), one.data(), dx.data(), n);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (f == UnaryFunction::relu && std::isnan(x[i])) continue;  // relu's gradient is dy or 0
        BOOST_CHECK_MESSAGE(std::isnan(dx[i]) == std::isnan(x[i]),
                            name_of(f) << "'(" << x[i] << ") = " << dx[i]);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(bias_kernels_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t cols : {1, 3, 16, 17, 64, 100}) {
      const std::int64_t rows = 5, n = rows * cols;
      const std::vector<real> x = normal_values(n, 2, 1), bias = normal_values(cols, 1, 2);
      std::vector<real> sum(x.size());
      plain::add_bias(x.data(), bias.data(), sum.data(), rows, cols);
      Guarded y(x);
      kernels::add_bias(y.data(), bias.data(), y.data(), rows, cols);
      check_same(y.values(), sum);
      for (const UnaryFunction f : all_unary_functions) {
        const std::vector<real> expected = applied(f, sum);
        Guarded h(x, 2), z(x, 3);
        // The input and h are the same array.
        kernels::add_bias_unary(f, h.data(), bias.data(), h.data(), z.data(), rows, cols);
        check_same(h.values(), sum);
        check_close(z.values(), expected, tolerance);
        Guarded in_place(x);
        kernels::add_bias_unary(f, in_place.data(), bias.data(), nullptr, in_place.data(), rows,
                                cols);
        check_same(in_place.values(), z.values());
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
