// int8 products: quantisation of rows, and bitwise comparison of products with scalar references.
#include <cstring>

#include "autograd/kernels/fast/gemm/int8.h"
#include "autograd/kernels/fast/gemm/packed.h"
#include "autograd/kernels/gemm.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_int8)
using kernels::Int8Weights;
using kernels::Trans;
namespace plain = kernels::plain;

namespace {

struct Quantised {
  std::vector<std::int8_t> q;
  std::vector<float> scales;
};

Quantised quantised(const std::vector<real>& x, std::int64_t rows) {
  const std::int64_t cols = std::ssize(x) / rows;
  Quantised it{std::vector<std::int8_t>(x.size()), std::vector<float>(rows)};
  kernels::quantise_rows(x.data(), rows, cols, it.q.data(), it.scales.data());
  return it;
}

std::vector<real> restored(const Quantised& it) {
  const std::int64_t rows = std::ssize(it.scales);
  std::vector<real> x(it.q.size());
  kernels::dequantise_rows(it.q.data(), it.scales.data(), rows, std::ssize(x) / rows, x.data());
  return x;
}

struct Sizes {
  std::int64_t m, n, k;
};

std::vector<real> twin(const std::vector<real>& a, const std::vector<real>& b, const Sizes& s) {
  const Quantised weights = quantised(b, s.n);
  std::vector<real> c(static_cast<std::size_t>(s.m * s.n));
  plain::multiply_int8(a.data(), weights.q.data(), weights.scales.data(), s.m, s.n, s.k, c.data());
  return c;
}

std::vector<real> product(const std::vector<real>& a, const std::vector<real>& b, const Sizes& s) {
  const Guarded left(a), result(std::vector<real>(static_cast<std::size_t>(s.m * s.n), 7));
  Int8Weights(b.data(), s.n, s.k).multiply(left.data(), s.m, result.data());
  return result.values();
}

/// Runs body for each instruction set, including the one that has int8 dot products (AVX-512 VNNI).
template <class Body>
void for_each_set(const Body& body) {
  for_each_target(body, HWY_AVX3_DL);
}

std::vector<real> values(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return normal_values(rows * cols, 1, seed);
}

bool all_nan(const real* x, std::int64_t n) {
  return std::all_of(x, x + n, [](real v) { return std::isnan(v); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_is_quantised_to_integers_and_a_scale) {
  const std::vector<real> x{127, real(-63.4), real(0.6), 0, 0.5, 1.5, -2.5, 0, 0, 0, 0, 0, 0, 0};
  const Quantised it = quantised(x, 2);
  BOOST_TEST(it.q == (std::vector<std::int8_t>{127, -63, 1, 0, 0, 2, -2, 0, 0, 0, 0, 0, 0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(it.scales == (std::vector<float>{1, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(quantisation_errors_are_at_most_half_the_scale_of_the_row) {
  for (const double size : {1e-30, 1e-3, 1.0, 1e30}) {
    const std::vector<real> x = normal_values(50 * 40, size, 3);
    const Quantised it = quantised(x, 50);
    const std::vector<real> again = restored(it);
    for (std::int64_t r = 0; r < 50; ++r) {
      double largest = 0;
      int max_q = 0;
      for (std::int64_t i = r * 40; i < r * 40 + 40; ++i) {
        BOOST_TEST(std::abs(double{x[i]} - double{again[i]}) <= 0.50001 * double{it.scales[r]});
        largest = std::max(largest, std::abs(double{x[i]}));
        max_q = std::max(max_q, std::abs(int{it.q[i]}));
      }
      BOOST_TEST(max_q == 127);
      BOOST_TEST(double{it.scales[r]} >= largest / 127 * (1 - 1e-7));
      BOOST_TEST(double{it.scales[r]} <= largest / 127 * (1 + 2e-5));
    }
  }
}

BOOST_AUTO_TEST_CASE(quantising_restored_values_returns_the_same_bits) {
  for (const double size : {1e-30, 0.02, 1e30}) {
    const Quantised once = quantised(normal_values(300 * 17, size, 4), 300),
                    twice = quantised(restored(once), 300);
    BOOST_TEST(once.q == twice.q, boost::test_tools::per_element());
    BOOST_TEST(once.scales == twice.scales, boost::test_tools::per_element());
    for (std::size_t i = 0; i < once.q.size(); ++i)  // integer times scale is exact in float
      BOOST_TEST(double{once.scales[i / 17]} * once.q[i] == double{restored(once)[i]});
  }
}

BOOST_AUTO_TEST_CASE(row_scale_is_nan_for_nan_infinity_or_huge_values_and_zero_for_tiny_ones) {
  const auto scale = [](double magnitude) {
    return quantised({real(0.5), static_cast<real>(-magnitude)}, 1).scales[0];
  };
  for (const double special : {double{not_a_number}, double{inf}, 0x1p127})
    BOOST_TEST(std::isnan(scale(special)));
  BOOST_TEST(scale(0x1.fffffep126) > 1e36F);
  const std::vector<real> tiny{real(0x1p-120), 0};
  BOOST_TEST(quantised(tiny, 1).scales[0] == 0);
  BOOST_TEST(quantised({real(0x1p-119), 0}, 1).scales[0] > 0);
}

BOOST_AUTO_TEST_CASE(int8_products_of_many_sizes_equal_the_scalar_reference_bitwise) {
  std::vector<Sizes> all{{505, 70, 3}, {260, 33, 300}, {13, 65, 600}, {5, 3, 1025}};
  for (std::int64_t m = 1; m <= 70; ++m) all.push_back({m, 37, 21});
  for (const std::int64_t m : {1, 5, 7, 12, 13, 25}) {
    for (const std::int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65}) {
      for (const std::int64_t k : {1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 63, 64, 65})
        all.push_back({m, n, k});
    }
  }
  for (const Sizes& s : all) {
    const std::vector<real> a = values(s.m, s.k, 1), b = values(s.n, s.k, 2),
                            expected = twin(a, b, s);
    for_each_set([&](const std::string&) {
      BOOST_TEST_CONTEXT(s.m << " x " << s.n << " x " << s.k)
      check_same(product(a, b, s), expected);
    });
  }
}

BOOST_AUTO_TEST_CASE(int8_products_are_close_to_the_products_of_unquantised_operands) {
  const Sizes s{20, 30, 256};
  const std::vector<real> a = values(s.m, s.k, 1), b = values(s.n, s.k, 2), c = product(a, b, s);
  std::vector<real> exact(c.size());
  plain::multiply(kernels::Trans::no, kernels::Trans::yes, s.m, s.n, s.k, 1, a.data(), s.k,
                  b.data(), s.k, 0, exact.data(), s.n);
  // The standard deviation of the values is 16, that of the errors 0.2.
  for (std::size_t i = 0; i < c.size(); ++i)
    BOOST_TEST(std::abs(double{c[i]} - double{exact[i]}) < 1.0);
}

BOOST_AUTO_TEST_CASE(int8_products_of_rows_of_the_maximum_length_do_not_overflow) {
  const Sizes s{2, 3, kernels::max_int8_row};
  std::vector<real> a(static_cast<std::size_t>(s.m * s.k), 1),
      b(static_cast<std::size_t>(s.n * s.k));
  std::fill_n(a.begin() + s.k, s.k, real(-127));
  std::fill_n(b.begin(), s.k, real(127));
  std::fill_n(b.begin() + s.k, s.k, real(-1));
  for (std::int64_t i = 0; i < s.k; ++i) b[2 * s.k + i] = i % 2 == 0 ? 1 : -1;
  const std::vector<real> expected = twin(a, b, s);
  const double sum = static_cast<double>(s.k);
  BOOST_TEST(double{expected[0]} == 127 * sum, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(double{expected[4]} == 127 * sum, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(expected[2] == 0);
  for_each_set([&](const std::string&) { check_same(product(a, b, s), expected); });
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_in_an_operand_make_only_their_row_and_column_nan) {
  const Sizes s{14, 37, 70};
  for_each_set([&](const std::string&) {
    for (const real special : {not_a_number, -not_a_number, inf, -inf, real(0x1p127)}) {
      std::vector<real> a = values(s.m, s.k, 1), b = values(s.n, s.k, 2);
      const std::vector<real> usual = product(a, b, s);
      a[static_cast<std::size_t>(13 * s.k + 69)] = special;
      b[static_cast<std::size_t>(36 * s.k + 7)] = special;
      const std::vector<real> c = product(a, b, s);
      check_same(c, twin(a, b, s));
      BOOST_TEST(all_nan(c.data() + 13 * s.n, s.n));
      for (std::int64_t i = 0; i < 13; ++i) {
        BOOST_TEST(std::isnan(c[i * s.n + 36]));
        BOOST_TEST(std::equal(&c[i * s.n], &c[i * s.n + 36], &usual[i * s.n]));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(int8_products_with_zero_or_tiny_rows_are_zero) {
  const Sizes s{3, 20, 33};
  for_each_set([&](const std::string&) {
    for (const real small : {real(0), real(-0.0), real(1e-40), real(1e-37)}) {
      std::vector<real> a = values(s.m, s.k, 1), b = values(s.n, s.k, 2);
      std::fill_n(a.begin() + s.k, s.k, small);
      std::fill_n(b.begin() + 5 * s.k, s.k, small);
      const std::vector<real> c = product(a, b, s);
      check_same(c, twin(a, b, s));
      BOOST_TEST(std::all_of(&c[20], &c[40], [](real v) { return v == 0; }));
      BOOST_TEST((c[5] == 0 && c[4] != 0));
    }
  });
}

BOOST_AUTO_TEST_CASE(gemm_uses_int8_weights_within_a_packed_scope) {
  const Sizes s{9, 50, 70};
  const std::vector<real> a = values(s.m, s.k, 1);
  const Array b(Shape{s.n, s.k}, values(s.n, s.k, 2));
  const std::vector<real> part(b.row(20), b.row(20) + 30 * s.k),
      whole(b.data(), b.data() + b.size());
  const auto of = [&](const real* rows, std::int64_t n) {
    std::vector<real> c(static_cast<std::size_t>(s.m * n));
    kernels::gemm(Trans::no, Trans::yes, s.m, n, s.k, 1, a.data(), s.k, rows, s.k, 0, c.data(), n);
    return c;
  };
  for_each_set([&](const std::string&) {
    kernels::PackedWeights weights(kernels::PackedType::int8);
    weights.add(b);
    const kernels::PackedScope scope(weights);
    check_same(of(b.data(), s.n), twin(a, whole, s));
    check_same(of(b.row(20), 30), twin(a, part, {s.m, 30, s.k}));
  });
}

BOOST_AUTO_TEST_CASE(rows_longer_than_the_maximum_are_not_quantised) {
  const Array b(Shape{1, kernels::max_int8_row + 1}), longest(Shape{1, b.cols() - 1});
  kernels::PackedWeights weights(kernels::PackedType::int8);
  weights.add(b);
  weights.add(longest);
  const kernels::PackedMatrix* const packed = weights.find(b.data(), 1, b.cols());
  BOOST_TEST((packed == nullptr || packed->panels.defined()));
  BOOST_TEST(!weights.find(longest.data(), 1, longest.cols())->panels.defined());
}

BOOST_AUTO_TEST_SUITE_END()
