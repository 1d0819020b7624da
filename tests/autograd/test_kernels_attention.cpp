#include "autograd/kernels/fast/attention.h"
#include "autograd/kernels/fast/plain.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_attention)
using kernels::KeyRange;
using kernels::Visible;
namespace plain = kernels::plain;

namespace {

const double epsilon = Limits::epsilon();

/// The size of a tile and the range of keys that each of its rows reads.
struct Sizes {
  std::int64_t rows, cols;
  std::vector<KeyRange> reads;
  std::int64_t first = 0;
  Visible visible() const { return {reads.data(), first}; }
};
/// A tile whose rows all read `reads` or, if `moves`, whose row r reads `reads` shifted by r keys.
Sizes moving(std::int64_t rows, std::int64_t cols, KeyRange reads, std::int64_t first, bool moves) {
  Sizes s{rows, cols, {}, first};
  for (std::int64_t r = 0; r < rows; ++r)
    s.reads.push_back({reads.begin + (moves ? r : 0), reads.end + (moves ? r : 0)});
  return s;
}

/// Tiles with widths near multiples of the vector width, and ranges that begin and end before,
/// within and after the tile.
std::vector<Sizes> all_sizes() {
  std::vector<Sizes> all;
  for (const std::int64_t cols : {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 130}) {
    for (const std::int64_t rows : {1, 4}) {
      all.push_back(moving(rows, cols, {0, cols}, 0, false));
      all.push_back(moving(rows, cols, {3, 3}, 0, false));
      for (const std::int64_t end :
           {std::int64_t{-6}, std::int64_t{-2}, std::int64_t{1}, cols / 2, cols + 1}) {
        all.push_back(moving(rows, cols, {0, 7 + end}, 7, true));
        all.push_back(moving(rows, cols, {7 + end - cols / 3, 7 + end}, 7, true));
      }
    }
  }
  return all;
}

std::vector<real> values(const Sizes& s, std::uint64_t seed, bool awkward) {
  std::vector<real> x = normal_values(s.rows * s.cols, 3, seed);
  if (!awkward || x.empty()) return x;
  const real special[] = {not_a_number,        inf, -inf, Limits::max(), -Limits::max(), 0,
                          Limits::denorm_min()};
  for (std::size_t i = seed % 3; i < x.size(); i += 5)
    x[i] = special[(i + seed) % std::size(special)];
  return x;
}

}  // namespace

BOOST_AUTO_TEST_CASE(recomputed_weights_equal_their_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const Sizes& s : all_sizes()) {
      for (const bool awkward : {false, true}) {
        for (const real lse : {real(2), real(-1), inf, -inf, not_a_number}) {
          const std::vector<real> sums(static_cast<std::size_t>(2 * s.rows), lse);
          Guarded fast(values(s, 1, awkward), 1);
          std::vector<real> slow = values(s, 1, awkward);
          kernels::attention_softmax_again(fast.data(), s.rows, s.cols, s.visible(), sums.data(),
                                           2);
          plain::attention_softmax_again(slow.data(), s.rows, s.cols, s.visible(), sums.data(), 2);
          check_close(fast.values(), slow, 16 * epsilon);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(the_gradient_with_respect_to_the_scores_equals_its_scalar_reference) {
  for_each_target([](const std::string&) {
    for (const Sizes& s : all_sizes()) {
      for (const bool awkward : {false, true}) {
        const std::vector<real> weights = values(s, 1, awkward),
                                delta = normal_values(s.rows, 1, 3);
        Guarded fast(values(s, 2, awkward), 3);
        std::vector<real> slow = values(s, 2, awkward);
        kernels::attention_softmax_grad(weights.data(), fast.data(), fast.data(), s.rows, s.cols,
                                        s.visible(), delta.data());
        plain::attention_softmax_grad(weights.data(), slow.data(), slow.data(), s.rows, s.cols,
                                      s.visible(), delta.data());
        check_close(fast.values(), slow, 4 * epsilon);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(log_sum_exp_accumulated_over_tiles_equals_that_of_the_row) {
  const std::int64_t n = 300;
  const std::vector<real> x = normal_values(n, 4, 9);
  const real whole = plain::log_sum_exp_row(x.data(), n);
  const KeyRange reads{0, n};
  for (const std::int64_t tile : {1, 7, 64, 299, 300}) {
    real lse = -inf;
    for (std::int64_t at = 0; at < n; at += tile) {
      kernels::attention_add_to_lse(x.data() + at, 1, std::min(tile, n - at), {&reads, at}, &lse,
                                    1);
    }
    BOOST_CHECK_CLOSE_FRACTION(lse, whole, 50 * epsilon);
  }
}

BOOST_AUTO_TEST_CASE(a_tile_without_visible_keys_leaves_log_sum_exp_unchanged) {
  const std::vector<real> hidden = {1, 2, -inf, -inf};
  real lse[] = {-inf, 3, inf, not_a_number};
  const std::vector<real> before(std::begin(lse), std::end(lse));
  const KeyRange none[4] = {{0, 0}, {5, 5}, {1, 4}, {-3, 0}}, all{0, 2};
  kernels::attention_add_to_lse(hidden.data(), 4, 1, {none, 0}, lse, 1);  // no row reads a key
  check_same({std::begin(lse), std::end(lse)}, before);
  // All keys are masked.
  kernels::attention_add_to_lse(hidden.data() + 2, 1, 2, {&all, 0}, lse + 1, 1);
  BOOST_CHECK_EQUAL(lse[1], 3);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_propagate_to_log_sum_exp) {
  for (const real special : {not_a_number, inf}) {
    for (const bool earlier : {false, true}) {
      const std::vector<real> x = {1, earlier ? real(2) : special};
      real lse = earlier ? special : real(0);
      const KeyRange all{0, 2};
      kernels::attention_add_to_lse(x.data(), 1, 2, {&all, 0}, &lse, 1);
      BOOST_CHECK(std::isnan(special) ? std::isnan(lse) : lse == inf);
    }
  }
  const KeyRange all{0, 2};
  for (const real before : {-inf, inf}) {  // -inf: no earlier tile
    const std::vector<real> x = {1, not_a_number};
    real lse = before;
    kernels::attention_add_to_lse(x.data(), 1, 2, {&all, 0}, &lse, 1);
    BOOST_CHECK(std::isnan(lse));
  }
}

BOOST_AUTO_TEST_SUITE_END()
