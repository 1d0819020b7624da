#include "autograd/kernels/fast/plain.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_reduce)
namespace plain = kernels::plain;

namespace {
const double epsilon = Limits::epsilon();
}

BOOST_AUTO_TEST_CASE(sums_and_dot_products_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      const double scale = 4 * static_cast<double>(n);
      Guarded x(normal_values(n, 2, 1), 1), y(normal_values(n, 2, 2), 2);
      BOOST_CHECK(close(kernels::sum(x.data(), n), plain::sum(x.data(), n), epsilon, scale));
      BOOST_CHECK(close(kernels::dot(x.data(), y.data(), n), plain::dot(x.data(), y.data(), n),
                        epsilon, scale));
      BOOST_CHECK_CLOSE_FRACTION(kernels::sum_squares(x.data(), n), plain::sum_squares(x.data(), n),
                                 1e-14);
    }
  });
}

BOOST_AUTO_TEST_CASE(first_above_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      std::vector<real> x = normal_values(n, 1, 7);
      for (std::int64_t i = 3; i < n; i += 11) x[static_cast<std::size_t>(i)] = not_a_number;
      for (std::int64_t i = 5; i < n; i += 97) x[static_cast<std::size_t>(i)] = i % 2 ? inf : -inf;
      Guarded at(x, 2);
      for (const real bound : {-inf, real(-1), real(0), real(1.5), real(4), inf, not_a_number}) {
        for (const std::int64_t from : {std::int64_t{0}, n / 3, n - 1, n}) {
          if (from < 0) continue;
          BOOST_REQUIRE_EQUAL(kernels::first_above(at.data(), from, bound, n),
                              plain::first_above(x.data(), from, bound, n));
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(sum_squares_has_the_same_bits_for_every_vector_width_and_alignment) {
  const std::int64_t n = 4099;
  const std::vector<real> x = normal_values(n, 1, 3);
  std::vector<double> results;
  for_each_target([&](const std::string& name) {
    if (name == "plain") return;
    for (const std::int64_t shift : {0, 1, 2, 3, 7}) {
      Guarded at(x, shift);
      results.push_back(kernels::sum_squares(at.data(), n));
    }
  });
  for (const double result : results) BOOST_CHECK_EQUAL(result, results[0]);
}

BOOST_AUTO_TEST_CASE(sums_of_floats_are_accumulated_in_double) {
  // 2^24 + 1 + 1 + … is exact; in float, each addition of 1 would be lost.
  std::vector<real> x(10000, 1);
  x[0] = 16777216;
  BOOST_CHECK_EQUAL(kernels::sum(x.data(), 10000), real(16777216 + 9999));
  std::vector<real> big = {real(1e38), real(1e38)};
  BOOST_CHECK_CLOSE_FRACTION(kernels::sum_squares(big.data(), 2), 2e76, 1e-6);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_propagate_through_sums) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : {1, 5, 16, 33, 500}) {
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        std::vector<real> x(static_cast<std::size_t>(n), 1);
        x[static_cast<std::size_t>(at)] = not_a_number;
        BOOST_CHECK(std::isnan(kernels::sum(x.data(), n)));
        BOOST_CHECK(std::isnan(kernels::sum_squares(x.data(), n)));
        x[static_cast<std::size_t>(at)] = -inf;
        BOOST_CHECK_EQUAL(kernels::sum(x.data(), n), -inf);
        BOOST_CHECK_EQUAL(kernels::sum_squares(x.data(), n),
                          std::numeric_limits<double>::infinity());
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(column_sums_equal_their_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t cols : {1, 5, 16, 31, 64, 130}) {
      for (const std::int64_t rows : {0, 1, 7, 8, 9, 40}) {
        const std::vector<real> x = normal_values(rows * cols, 1, 4),
                                start = normal_values(cols, 1, 5);
        std::vector<real> expected = start;
        plain::add_column_sums(x.data(), rows, cols, expected.data());
        Guarded y(start), in(x, 3);
        kernels::add_column_sums(in.data(), rows, cols, y.data());
        check_close(y.values(), expected, epsilon, 4 * static_cast<double>(rows + 1));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(tree_sums_equal_their_scalar_reference) {
  for_each_target([](const std::string&) {
    for (std::int64_t count = 0; count <= 17; ++count) {
      for (const std::int64_t n : {1, 15, 512, 513, 1500}) {
        // Tests every set of missing arrays for up to 4 arrays, and three sets for more.
        const std::int64_t sets = count <= 4 ? std::int64_t{1} << count : 3;
        for (std::int64_t missing = 0; missing < sets; ++missing) {
          std::vector<std::vector<real>> arrays;
          std::vector<const real*> x;
          for (std::int64_t k = 0; k < count; ++k)
            arrays.push_back(normal_values(n, 1, 100 + static_cast<std::uint64_t>(k)));
          for (std::int64_t k = 0; k < count; ++k) {
            const bool is_missing =
                count <= 4 ? missing >> k & 1 : missing > 0 && k % (missing + 1) == 0;
            x.push_back(is_missing ? nullptr : arrays[static_cast<std::size_t>(k)].data());
          }
          std::vector<real> expected(static_cast<std::size_t>(n));
          plain::tree_sum(x.data(), count, expected.data(), n);
          Guarded y(normal_values(n, 1, 6));
          kernels::tree_sum(x.data(), count, y.data(), n);
          BOOST_REQUIRE(y.values() == expected);
          if (count > 0 && x[0]) {  // y is x_0: runs in place
            kernels::tree_sum(x.data(), count, arrays[0].data(), n);
            BOOST_REQUIRE(arrays[0] == expected);
          }
        }
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
