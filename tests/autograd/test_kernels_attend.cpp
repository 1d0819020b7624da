#include "autograd/kernels/attend.h"
#include "autograd/kernels/plain/plain.h"
#include "autograd/kernels/plain/rows.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;
namespace plain = kernels::plain;

namespace {

/// attend, made of its plain parts.
std::vector<real> plainly(const real* q, const std::vector<const real*>& rows, std::int64_t size,
                          std::int64_t heads) {
  const auto n = static_cast<std::int64_t>(rows.size());
  std::vector<real> weights(static_cast<std::size_t>(heads * n)),
      out(static_cast<std::size_t>(heads * size));
  plain::attend_scores(q, rows.data(), n, size, heads, weights.data());
  for (std::int64_t h = 0; h < heads; ++h)
    plain::softmax_row(weights.data() + h * n, weights.data() + h * n, n);
  plain::attend_mix(weights.data(), rows.data(), n, size, heads, out.data());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_attend)

BOOST_AUTO_TEST_CASE(one_query_of_every_size_equals_the_plain_twin) {
  for_each_target([](const std::string&) {
    for (const std::int64_t heads : {1, 2, 3}) {
      for (const std::int64_t size : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100}) {
        for (const std::int64_t n : {0, 1, 2, 5, 16, 33}) {
          const std::int64_t d = heads * size;
          Guarded q(normal_values(d, 1, 1), 3), kv(normal_values(n * 2 * d, 1, 2), 1),
              out(normal_values(d, 1, 3), 2);
          std::vector<const real*> rows;
          for (std::int64_t t = 0; t < n; ++t) rows.push_back(kv.data() + t * 2 * d);
          kernels::attend(q.data(), rows, d, heads, out.data());
          check_close(out.values(), plainly(q.data(), rows, size, heads),
                      8 * std::numeric_limits<real>::epsilon(), 4);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_show_in_their_head_alone) {
  for_each_target([](const std::string&) {
    const std::int64_t size = 19, heads = 3, d = heads * size, n = 4;
    for (const real odd : {not_a_number, inf, -inf}) {
      for (const std::int64_t place : {size, d + size + 18}) {  // a key's, a value's of head 1
        std::vector<real> kv = normal_values(n * 2 * d, 1, 2);
        const std::vector<real> q = normal_values(d, 1, 1);
        kv[static_cast<std::size_t>(2 * d + place)] = odd;
        std::vector<const real*> rows;
        for (std::int64_t t = 0; t < n; ++t) rows.push_back(kv.data() + t * 2 * d);
        std::vector<real> out(static_cast<std::size_t>(d));
        kernels::attend(q.data(), rows, d, heads, out.data());
        check_close(out, plainly(q.data(), rows, size, heads),
                    8 * std::numeric_limits<real>::epsilon(), 4);
        for (std::int64_t c = 0; c < d; ++c) {
          if (c / size != 1) BOOST_CHECK(std::isfinite(out[static_cast<std::size_t>(c)]));
        }
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
