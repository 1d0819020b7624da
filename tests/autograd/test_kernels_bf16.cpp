// bfloat16: checks the bits of rounded values, and compares products in bf16 with products of
// rounded operands in double.
#include <bit>
#include <cmath>
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

/// A product whose operands' rows begin a few values apart, with arbitrary values between them.
struct Case {
  Trans ta, tb;
  std::int64_t m, n, k;
  std::int64_t lda = (ta == Trans::yes ? m : k) + 3, ldb = (tb == Trans::yes ? k : n) + 5,
               ldc = n + 7;
  // The last row has no gap after it, which a product may not read.
  std::vector<real> a = normal_values((ta == Trans::yes ? k : m) * lda - 3, 1, 1),
                    b = normal_values((tb == Trans::yes ? n : k) * ldb - 5, 1, 2),
                    before = normal_values(m * ldc - 7, 1, 3);

  std::vector<real> product(kernels::Bf16Unit unit, bool add) const {
    std::vector<real> c = before;
    kernels::gemm_bf16(unit, ta, tb, m, n, k, a.data(), lda, b.data(), ldb, add, c.data(), ldc);
    return c;
  }
  /// C[i, j], summed in double.
  double entry(std::int64_t i, std::int64_t j, bool add) const {
    double sum = add ? double{before[static_cast<std::size_t>(i * ldc + j)]} : 0;
    for (std::int64_t l = 0; l < k; ++l) {
      const real x = a[static_cast<std::size_t>(ta == Trans::yes ? l * lda + i : i * lda + l)];
      const real y = b[static_cast<std::size_t>(tb == Trans::yes ? j * ldb + l : l * ldb + j)];
      sum += double{widened(rounded(x))} * double{widened(rounded(y))};
    }
    return sum;
  }
};

void check_product(const Case& x, kernels::Bf16Unit unit, bool add) {
  const std::vector<real> c = x.product(unit, add);
  double worst = 0;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(c.size()); ++at) {
    const std::int64_t i = at / x.ldc, j = at % x.ldc;
    if (j < x.n)
      worst = std::max(worst, std::abs(c[static_cast<std::size_t>(at)] - x.entry(i, j, add)));
    else  // memory outside C is unchanged
      BOOST_REQUIRE(c[static_cast<std::size_t>(at)] == x.before[static_cast<std::size_t>(at)]);
  }
  // The error of sums in float. Products of unrounded operands would differ by about 0.003 √k.
  BOOST_TEST(worst < 1e-6 * static_cast<double>(x.k + 3));
}

/// Calls f for each unit that this processor has.
template <class F>
void for_each_unit(const F& f) {
  using enum kernels::Bf16Unit;
  for (const kernels::Bf16Unit unit : {fma, pairs, tiles}) {
    if (!kernels::has_bf16_unit(unit)) {
      BOOST_TEST_MESSAGE("not tested on this processor: " << kernels::name_of(unit));
      continue;
    }
    BOOST_TEST_CONTEXT(kernels::name_of(unit)) { f(unit); }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(bf16_products_equal_products_of_rounded_operands) {
  for_each_unit([](kernels::Bf16Unit unit) {
    for (const Trans ta : {Trans::no, Trans::yes}) {
      for (const Trans tb : {Trans::no, Trans::yes}) {
        for (const bool add : {false, true}) {
          check_product({ta, tb, 200, 170, 150}, unit, add);
          check_product({ta, tb, 33, 47, 1061}, unit, add);  // several chains, the last one odd
        }
      }
    }
    for (const std::int64_t size : {1, 2, 15, 16, 17, 31, 32, 33, 48}) {
      check_product({Trans::no, Trans::no, size, 40, 50}, unit, false);
      check_product({Trans::yes, Trans::yes, 40, size, 50}, unit, true);
      check_product({Trans::no, Trans::yes, 40, 50, size}, unit, false);
      check_product({Trans::yes, Trans::no, 40, 50, size}, unit, false);
    }
    check_product({Trans::no, Trans::yes, 2100, 35, 20}, unit, true);    // two blocks of rows
    check_product({Trans::yes, Trans::no, 1200, 1100, 9}, unit, false);  // two blocks of columns
  });
}

BOOST_AUTO_TEST_CASE(a_row_of_c_has_the_same_bits_in_a_bf16_product_of_fewer_rows_or_columns) {
  for_each_unit([](kernels::Bf16Unit unit) {
    const Case whole{Trans::no, Trans::no, 70, 90, 700};
    const std::vector<real> c = whole.product(unit, false);
    for (const std::int64_t top : {0, 1, 40}) {
      Case part{Trans::no, Trans::no, 29, 61, 700};
      std::copy_n(whole.a.begin() + top * whole.lda, part.a.size(), part.a.begin());
      for (std::int64_t l = 0; l < part.k; ++l)
        std::copy_n(whole.b.begin() + l * whole.ldb, part.n, part.b.begin() + l * part.ldb);
      const std::vector<real> some = part.product(unit, false);
      for (std::int64_t i = 0; i < part.m; ++i) {
        BOOST_REQUIRE(std::memcmp(&some[static_cast<std::size_t>(i * part.ldc)],
                                  &c[static_cast<std::size_t>((top + i) * whole.ldc)],
                                  static_cast<std::size_t>(part.n) * sizeof(real)) == 0);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_large_gradient_of_weights_has_the_same_bits_at_any_address) {
  // At an address that is a multiple of 64 bytes, it is written past the caches.
  for_each_unit([](kernels::Bf16Unit unit) {
    const Case x{Trans::yes, Trans::no, 1030, 528, 40};
    Array memory({x.m * x.n + 1});
    const auto product = [&](real* c) {
      std::fill_n(c, x.m * x.n, not_a_number);
      kernels::gemm_bf16(unit, x.ta, x.tb, x.m, x.n, x.k, x.a.data(), x.lda, x.b.data(), x.ldb,
                         false, c, x.n);
      return std::vector<real>(c, c + x.m * x.n);
    };
    BOOST_TEST((product(memory.data()) == product(memory.data() + 1)));
  });
}

BOOST_AUTO_TEST_CASE(a_nan_or_infinity_remains_in_its_row_and_column_of_a_bf16_product) {
  for_each_unit([](kernels::Bf16Unit unit) {
    for (const real special : {Limits::quiet_NaN(), Limits::infinity()}) {
      Case x{Trans::no, Trans::yes, 40, 50, 45};
      x.a[static_cast<std::size_t>(39 * x.lda + 44)] = special;
      x.b[static_cast<std::size_t>(7 * x.ldb + 3)] = special;
      const std::vector<real> c = x.product(unit, false);
      for (std::int64_t i = 0; i < x.m; ++i) {
        for (std::int64_t j = 0; j < x.n; ++j) {
          BOOST_REQUIRE_EQUAL(std::isfinite(c[static_cast<std::size_t>(i * x.ldc + j)]),
                              i != 39 && j != 7);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(gemm_uses_the_fastest_unit_for_large_products_in_a_scope) {
  if (!kernels::bf16_obstacle().empty()) return;
  using enum kernels::Bf16Unit;
  const kernels::Bf16Unit unit = kernels::bf16_unit();
  BOOST_TEST(kernels::has_bf16_unit(unit));
  BOOST_TEST((!kernels::has_bf16_unit(tiles) || unit == tiles));
  const Case x{Trans::yes, Trans::no, 170, 180, 150};
  for (const bool add : {false, true}) {
    std::vector<real> c = x.before;
    const kernels::Bf16Scope scope(true);
    kernels::gemm(x.ta, x.tb, x.m, x.n, x.k, 1, x.a.data(), x.lda, x.b.data(), x.ldb, real(add),
                  c.data(), x.ldc);
    BOOST_TEST((c == x.product(unit, add)));
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

BOOST_AUTO_TEST_CASE(products_with_a_short_side_remain_in_float) {
  const kernels::Bf16Scope scope(true);
  const bool supported = kernels::bf16_obstacle().empty();
  const std::int64_t many = 4096;
  for (const std::int64_t side : {15, 16}) {
    const bool expected = supported && side == 16;
    BOOST_TEST(kernels::supports_bf16(side, many, many, 1, 0) == expected);
    BOOST_TEST(kernels::supports_bf16(many, side, many, 1, 0) == expected);
    BOOST_TEST(kernels::supports_bf16(many, many, side, 1, 0) == expected);
  }
}

#endif

BOOST_AUTO_TEST_SUITE_END()
