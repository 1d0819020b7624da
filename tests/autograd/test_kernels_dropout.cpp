#include "autograd/kernels/fast/plain.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_dropout)
namespace plain = kernels::plain;

namespace {
const RandomKey key{
    .seed = 0x123456789ABCDEF0, .stream = Stream::dropout, .index = 0x1FFFFFFFF, .part = 77};
}

BOOST_AUTO_TEST_CASE(philox_returns_the_published_values) {
  // The test vectors of Random123 for philox4x32-10.
  BOOST_CHECK(
      (philox({0, 0, 0, 0}, 0, 0) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t all = 0xFFFFFFFF;
  BOOST_CHECK((philox({all, all, all, all}, all, all) ==
               PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_CHECK((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
               PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(dropout_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const std::int64_t n : lengths()) {
      for (const std::int64_t first :
           {std::int64_t{0}, std::int64_t{128}, std::int64_t{128} * 1000003,
            (std::int64_t{1} << 35) - 256}) {
        for (const real p : {real(0), real(1e-6), real(0.1), real(0.5), real(0.999), real(1)}) {
          const std::vector<real> x = normal_values(n, 1, 1), r = normal_values(n, 1, 2);
          std::vector<real> expected(x.size()), expected_sum(x.size());
          plain::dropout(key, first, p, x.data(), expected.data(), n);
          plain::dropout_add(key, first, p, x.data(), r.data(), expected_sum.data(), n);
          Guarded y(x), z(r, 2);
          kernels::dropout_add(key, first, p, y.data(), z.data(), z.data(), n);
          kernels::dropout(key, first, p, y.data(), y.data(), n);
          BOOST_REQUIRE(y.values() == expected);
          BOOST_REQUIRE(z.values() == expected_sum);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(the_dropout_mask_of_a_value_depends_only_on_its_position) {
  const std::vector<real> x(1000, 1);
  std::vector<real> whole(1000), parts(1000);
  kernels::dropout(key, 256, real(0.3), x.data(), whole.data(), 1000);
  kernels::dropout(key, 256, real(0.3), x.data(), parts.data(), 384);
  kernels::dropout(key, 256 + 384, real(0.3), x.data(), parts.data() + 384, 1000 - 384);
  check_same(parts, whole);
}

BOOST_AUTO_TEST_CASE(dropout_drops_at_its_rate_and_preserves_the_mean) {
  const std::int64_t n = 1 << 20;
  const std::vector<real> x(n, 1);
  std::vector<real> y(n);
  for (const double p : {0.1, 0.25, 0.5}) {
    kernels::dropout(key, 0, static_cast<real>(p), x.data(), y.data(), n);
    double dropped = 0, sum = 0, pairs = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      dropped += y[at] == 0;
      sum += y[at];
      pairs += i > 0 && y[at] == 0 && y[at - 1] == 0;
    }
    const double deviation = std::sqrt(p * (1 - p) / n);
    BOOST_CHECK_SMALL(dropped / n - p, 5 * deviation);
    BOOST_CHECK_SMALL(sum / n - 1, 5 * deviation / (1 - p));
    BOOST_CHECK_SMALL(pairs / n - p * p, 5 * p / std::sqrt(n));  // adjacent drops are independent
  }
}

BOOST_AUTO_TEST_CASE(a_dropped_infinity_becomes_zero) {
  for_each_target([](const std::string&) {
    std::vector<real> x(300, inf), y(300);
    kernels::dropout(key, 0, real(0.5), x.data(), y.data(), 300);
    for (const real v : y) BOOST_CHECK(v == 0 || v == inf);
  });
}

BOOST_AUTO_TEST_SUITE_END()
