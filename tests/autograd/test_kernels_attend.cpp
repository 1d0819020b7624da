#include "autograd/kernels/fast/attend.h"

#include <deque>

#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_attend)
using kernels::HeadLayout;
namespace plain = kernels::plain;

namespace {

const double tolerance = 8 * std::numeric_limits<real>::epsilon();

/// Cached rows [keys, values], each in a separate array.
struct Cache {
  std::deque<Guarded> arrays;
  std::vector<const real*> rows;
  Cache(std::int64_t n, const HeadLayout& layout) {
    for (std::int64_t t = 0; t < n; ++t) {
      arrays.emplace_back(normal_values(2 * layout.key_heads * layout.size, 1, 10 + t), t % 3);
    }
    for (const Guarded& array : arrays) rows.push_back(array.data());
  }
};

/// Compares both products of one query and n cached rows with their scalar references.
void check_products(const HeadLayout& layout, std::int64_t n) {
  const std::int64_t d = layout.heads * layout.size;
  const real c = 1 / std::sqrt(static_cast<real>(layout.size));
  Cache cache(n, layout);
  Guarded q(normal_values(d, 1, 1), 3), scores(normal_values(layout.heads * n, 1, 2), 1),
      out(normal_values(d, 1, 3), 2);
  std::vector<real> plain_scores(static_cast<std::size_t>(layout.heads * n)),
      plain_out(static_cast<std::size_t>(d));
  kernels::attend_scores(q.data(), cache.rows.data(), n, layout, c, scores.data());
  plain::attend_scores(q.data(), cache.rows.data(), n, layout, c, plain_scores.data());
  check_close(scores.values(), plain_scores, tolerance, 4);
  kernels::attend_mix(plain_scores.data(), cache.rows.data(), n, layout, out.data());
  plain::attend_mix(plain_scores.data(), cache.rows.data(), n, layout, plain_out.data());
  check_close(out.values(), plain_out, tolerance, 16);
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_one_query_with_cached_rows_equal_their_scalar_references) {
  for_each_target([](const std::string&) {
    for (const std::int64_t size : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100}) {
      for (const std::int64_t n : {0, 1, 2, 5, 16, 33}) {
        for (const std::int64_t heads : {1, 2, 3}) check_products({heads, heads, size}, n);
        check_products({6, 2, size}, n);
        check_products({4, 1, size}, n);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_in_a_key_head_affect_only_its_query_heads) {
  for_each_target([](const std::string&) {
    const HeadLayout layout{6, 3, 19};
    const std::int64_t n = 4, size = layout.size, key_d = layout.key_heads * size;
    for (const real special : {not_a_number, inf, -inf}) {
      Cache cache(n, layout);
      cache.arrays[1].data()[size + 2] = special;           // a key of key head 1
      cache.arrays[2].data()[key_d + size + 18] = special;  // a value of key head 1
      const std::vector<real> q = normal_values(layout.heads * size, 1, 1);
      std::vector<real> scores(static_cast<std::size_t>(layout.heads * n));
      kernels::attend_scores(q.data(), cache.rows.data(), n, layout, 1, scores.data());
      for (std::int64_t i = 0; i < layout.heads * n; ++i) {
        const bool hit = layout.key_head(i / n) == 1 && i % n == 1;
        BOOST_CHECK_EQUAL(std::isfinite(scores[static_cast<std::size_t>(i)]), !hit);
      }
      const std::vector<real> weights(scores.size(), real(0.25));
      std::vector<real> out(q.size());
      kernels::attend_mix(weights.data(), cache.rows.data(), n, layout, out.data());
      for (std::int64_t c = 0; c < layout.heads * size; ++c) {
        const bool hit = layout.key_head(c / size) == 1 && c % size == 18;
        BOOST_CHECK_EQUAL(std::isfinite(out[static_cast<std::size_t>(c)]), !hit);
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
