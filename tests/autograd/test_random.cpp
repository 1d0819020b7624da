#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

#include "autograd/base/random.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(random_numbers)

// The test vectors of the authors' implementation, Random123: philox4x32 10 in kat_vectors.
BOOST_AUTO_TEST_CASE(philox_returns_the_published_values) {
  static_assert(philox({0, 0, 0, 0}, 0, 0) ==
                PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  static_assert(philox({ones, ones, ones, ones}, ones, ones) ==
                PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  const PhiloxBlock pi =
      philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0);
  BOOST_TEST((pi == PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(random_numbers_depend_on_every_part_of_the_key_and_on_the_position) {
  const RandomKey key{.seed = 1, .stream = Stream::dropout, .index = 2, .part = 3};
  const std::vector<RandomKey> changed_keys = {
      {.seed = 2, .stream = Stream::dropout, .index = 2, .part = 3},
      {.seed = 1 | (1ull << 40), .stream = Stream::dropout, .index = 2, .part = 3},
      {.seed = 1, .stream = Stream::shuffle, .index = 2, .part = 3},
      {.seed = 1, .stream = Stream::dropout, .index = 3, .part = 3},
      {.seed = 1, .stream = Stream::dropout, .index = 2 | (1ull << 40), .part = 3},
      {.seed = 1, .stream = Stream::dropout, .index = 2, .part = 4}};
  std::set<PhiloxBlock> blocks{key.block(0), key.block(1)};
  for (const RandomKey& changed : changed_keys) blocks.insert(changed.block(0));
  BOOST_TEST(blocks.size() == 2 + changed_keys.size());
  BOOST_TEST((key.block(5) == RandomKey(key).block(5)));
}

BOOST_AUTO_TEST_CASE(successive_calls_return_the_blocks_in_order) {
  const RandomKey key{.seed = 11, .stream = Stream::init, .index = 0, .part = 7};
  Random random(key);
  for (std::uint32_t position = 0; position < 3; ++position) {
    for (const std::uint32_t expected : key.block(position)) BOOST_TEST(random() == expected);
  }
}

BOOST_AUTO_TEST_CASE(below_returns_uniform_numbers) {
  Random random(RandomKey{.seed = 4, .stream = Stream::check, .index = 0, .part = 0});
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  // A count has mean 10,000 and standard deviation 93; the limit is about five standard deviations.
  for (const int count : counts) BOOST_TEST(std::abs(count - 10000) < 460);
  for (int i = 0; i < 100; ++i) BOOST_TEST(random.below(1) == 0u);
  // A multiplication without rejection would return every third value of this range twice as often.
  const std::uint32_t n = 3u << 30;
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += random.below(n) % 3 == 0;
  BOOST_TEST(std::abs(low - 10000) < 410);
}

BOOST_AUTO_TEST_CASE(uniform_and_normal_numbers_have_the_moments_of_their_distributions) {
  Random random(RandomKey{.seed = 5, .stream = Stream::check, .index = 0, .part = 0});
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0, normal_fourth = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform();
    if (!(u >= 0 && u < 1)) BOOST_ERROR("uniform returned " << u << ", outside [0, 1)");
    sum += u;
    squares += u * u;
    const double z = random.normal();
    normal_sum += z;
    normal_squares += z * z;
    normal_fourth += z * z * z * z;
  }
  // Each tolerance is five standard deviations of the mean.
  BOOST_TEST(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  BOOST_TEST(std::abs(squares / n - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
  BOOST_TEST(std::abs(normal_sum / n) < 5 * std::sqrt(1.0 / n));
  BOOST_TEST(std::abs(normal_squares / n - 1) < 5 * std::sqrt(2.0 / n));
  BOOST_TEST(std::abs(normal_fourth / n - 3) < 5 * std::sqrt(96.0 / n));
}

BOOST_AUTO_TEST_SUITE_END()
