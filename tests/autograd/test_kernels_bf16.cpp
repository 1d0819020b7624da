// bfloat16: checks the bits of rounded values, and compares products in bf16 with products of
// rounded operands in double.
#include <bit>
#include <cstring>

#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/memory/array.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_bf16)
using kernels::Trans;  // NOLINT(misc-unused-using-decls): unused in the double build

namespace {

std::uint16_t rounded(float x) {
  std::uint16_t y = 0;
  kernels::plain::to_bf16(&x, &y, 1);
  return y;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rounding_to_bf16_is_to_nearest_even) {
  const auto from_bits = [](std::uint32_t bits) { return rounded(std::bit_cast<float>(bits)); };
  BOOST_TEST(rounded(1.0F) == 0x3F80);
  BOOST_TEST(rounded(-2.0F) == 0xC000);
  BOOST_TEST(rounded(0.0F) == 0);
  BOOST_TEST(rounded(-0.0F) == 0x8000);
  BOOST_TEST(from_bits(0x3F807FFF) == 0x3F80);  // just below half: rounds down
  BOOST_TEST(from_bits(0x3F808000) == 0x3F80);  // half: rounds down to even
  BOOST_TEST(from_bits(0x3F818000) == 0x3F82);  // half: rounds up to even
  BOOST_TEST(from_bits(0x3F808001) == 0x3F81);  // just above half: rounds up
  BOOST_TEST(from_bits(0x7F7FFFFF) == 0x7F80);  // the largest float: rounds up to infinity
  BOOST_TEST(from_bits(0x7F800000) == 0x7F80);  // infinity
  BOOST_TEST(from_bits(0xFF800000) == 0xFF80);
  BOOST_TEST(from_bits(0x00000001) == 0x0000);  // the smallest denormal
  BOOST_TEST(from_bits(0x00018000) == 0x0002);
  BOOST_TEST(from_bits(0x7F800001) == 0x7FC0);  // a NaN whose upper fraction bits are 0 remains NaN
  BOOST_TEST(from_bits(0xFFFFFFFF) == 0xFFFF);
}

BOOST_AUTO_TEST_CASE(rounding_to_bf16_equals_its_scalar_reference) {
  for_each_target([&](const std::string&) {
    for (std::int64_t n = 0; n <= 70; ++n) {
      std::vector<float> x(static_cast<std::size_t>(n));
      Random random({7, Stream::data, static_cast<std::uint64_t>(n), 0});
      for (float& v : x)
        v = std::bit_cast<float>(random.below(0xFFFFFFFFu));  // any bits, including those of NaN
      std::vector<std::uint16_t> expected(x.size() + 1, 0xABCD), got = expected;
      kernels::plain::to_bf16(x.data(), expected.data(), n);
      kernels::to_bf16(x.data(), got.data(), n);
      BOOST_TEST(got == expected, boost::test_tools::per_element());
    }
  });
}

#ifndef HEED_DOUBLE

namespace {

float widened(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// A matrix whose rows begin `distance` values apart, with arbitrary values between them.
std::vector<real> matrix(std::int64_t rows, std::int64_t distance, std::uint64_t seed) {
  return normal_values(rows * distance, 1, seed);
}

/// Entry (i, j) of the product of the rounded operands, summed in double.
double entry(Trans ta, Trans tb, std::int64_t k, const std::vector<real>& a, std::int64_t lda,
             const std::vector<real>& b, std::int64_t ldb, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t l = 0; l < k; ++l) {
    const real x = a[static_cast<std::size_t>(ta == Trans::yes ? l * lda + i : i * lda + l)];
    const real y = b[static_cast<std::size_t>(tb == Trans::yes ? j * ldb + l : l * ldb + j)];
    sum += double{widened(rounded(x))} * double{widened(rounded(y))};
  }
  return sum;
}

void check_product(Trans ta, Trans tb, real beta) {
  const std::int64_t m = 200, n = 170, k = 150;
  const std::int64_t lda = (ta == Trans::yes ? m : k) + 3, ldb = (tb == Trans::yes ? k : n) + 5,
                     ldc = n + 7;
  const std::vector<real> a = matrix(ta == Trans::yes ? k : m, lda, 1),
                          b = matrix(tb == Trans::yes ? n : k, ldb, 2), before = matrix(m, ldc, 3);
  std::vector<real> c = before, again = before;
  {
    const kernels::Bf16Scope scope(true);
    kernels::gemm(ta, tb, m, n, k, 1, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
    kernels::gemm(ta, tb, m, n, k, 1, a.data(), lda, b.data(), ldb, beta, again.data(), ldc);
  }
  BOOST_TEST(std::memcmp(c.data(), again.data(), c.size() * sizeof(real)) == 0);
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (j >= n) {
        BOOST_REQUIRE(c[at] == before[at]);  // memory outside C is unchanged
        continue;
      }
      const double right = entry(ta, tb, k, a, lda, b, ldb, i, j) + double{beta} * before[at];
      worst = std::max(worst, std::abs(c[at] - right));
    }
  }
  // Sums of 150 terms in float are more accurate than this. Products of unrounded operands would
  // differ by about 0.1.
  BOOST_TEST(worst < 1e-4);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bf16_products_equal_products_of_rounded_operands) {
  if (!kernels::bf16_obstacle().empty()) {
    BOOST_TEST_MESSAGE("bf16 products are not tested: " << kernels::bf16_obstacle());
    return;
  }
  for (const Trans ta : {Trans::no, Trans::yes}) {
    for (const Trans tb : {Trans::no, Trans::yes}) {
      for (const real beta : {real(0), real(1)}) check_product(ta, tb, beta);
    }
  }
}

BOOST_AUTO_TEST_CASE(only_large_unscaled_products_within_a_scope_use_bf16) {
  const auto takes = [](std::int64_t m, real alpha = 1, real beta = 0) {
    return kernels::supports_bf16(m, 256, 256, alpha, beta);
  };
  BOOST_TEST(!takes(256));
  {
    const kernels::Bf16Scope scope(true);
    const bool supported = kernels::bf16_obstacle().empty();
    BOOST_TEST(takes(256) == supported);
    BOOST_TEST(takes(256, 1, 1) == supported);
    BOOST_TEST(!takes(256, real(0.5)));
    BOOST_TEST(!takes(256, 1, real(0.5)));
    BOOST_TEST(!takes(15));
    BOOST_TEST(!kernels::supports_bf16(64, 64, 256, 1, 0));
    const kernels::Bf16Scope inner(false);
    BOOST_TEST(!takes(256));
  }
  BOOST_TEST(!takes(256));
}

#endif

BOOST_AUTO_TEST_SUITE_END()
