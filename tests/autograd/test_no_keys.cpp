// Queries that read no key have output 0 and gradient 0. No gradient is NaN, and all other rows are
// bitwise unchanged.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/ops.h"
#include "autograd/ops/more/attention/causal.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(no_keys)

namespace {

using Ids = std::vector<std::int32_t>;

constexpr real inf = std::numeric_limits<real>::infinity();

bool finite(const Array& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](real v) { return std::isfinite(v); });
}
bool zero(const real* x, std::int64_t n) {
  return std::all_of(x, x + n, [](real v) { return v == 0; });
}
bool same_bits(const real* a, const real* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(real)) == 0;
}

Ids offsets_of(const std::vector<std::int32_t>& lengths) {
  Ids offsets{0};
  for (const std::int32_t n : lengths) offsets.push_back(offsets.back() + n);
  return offsets;
}
/// The rows of x that belong to sequences with at least one key.
Array with_keys(const Array& x, const Ids& offsets, const Ids& key_offsets) {
  std::vector<real> rows;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    if (key_offsets[s] == key_offsets[s + 1]) continue;
    rows.insert(rows.end(), x.row(offsets[s]),
                x.row(offsets[s]) + (offsets[s + 1] - offsets[s]) * x.cols());
  }
  return Array({static_cast<std::int64_t>(rows.size()) / x.cols(), x.cols()}, rows);
}
Array rows_of(const Array& x, std::int64_t begin, std::int64_t end) {
  return Array({end - begin, x.cols()},
               std::vector<real>(x.row(begin), x.row(begin) + (end - begin) * x.cols()));
}

/// An output and the gradients with respect to its inputs, all checked to be finite.
struct Outcome {
  Array y;
  std::vector<Array> gradients;
  Outcome(const Tensor& out, const Array& dy, const std::vector<Tensor>& inputs) : y(out.value()) {
    const Gradients all = backward(out, dy);
    for (const Tensor& x : inputs) {
      gradients.push_back(all[x]);
      BOOST_TEST(finite(gradients.back()));
    }
    BOOST_TEST(finite(y));
  }
};

Outcome crossed(const Array& q, const Array& kv, const Array& dy, const Ids& queries,
                const Ids& keys, const AttentionOptions& options) {
  const Tensor a = Tensor::variable(q), b = Tensor::variable(kv);
  return {cross_attention(a, b, queries, keys, options), dy, {a, b}};
}
Outcome composed(const Array& q, const Array& k, const Array& v, const Array& dy,
                 const Array& mask) {
  const Tensor a = Tensor::variable(q), b = Tensor::variable(k), c = Tensor::variable(v);
  return {attention(a, b, c, mask).output, dy, {a, b, c}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(fused_attention_to_empty_sources_returns_zeros) {
  struct Case {
    std::vector<std::int32_t> queries, keys;
  };
  // The last sequence of the last case is long enough for several blocks of queries and tiles of
  // keys.
  for (const Case& c : {Case{{3, 2, 4}, {0, 5, 1}}, Case{{3, 2, 4}, {5, 0, 1}},
                        Case{{3, 2, 4}, {5, 1, 0}}, Case{{1, 1, 1, 1}, {0, 1, 0, 0}},
                        Case{{150, 70, 9}, {200, 0, 1}}, Case{{65, 300, 80}, {0, 0, 1100}}}) {
    for (const std::int64_t heads : {1, 3}) {
      for (const real dropout : {real(0), real(0.4)}) {
        const std::int64_t d = 6;
        const Ids queries = offsets_of(c.queries), keys = offsets_of(c.keys);
        const AttentionOptions options{
            .heads = heads,
            .dropout = dropout,
            .key = {.seed = 9, .stream = Stream::dropout, .index = 2, .part = 0}};
        const Array q = random_array({queries.back(), d}, 1),
                    kv = random_array({keys.back(), 2 * d}, 2), dy = random_array(q.shape(), 3);
        const Outcome whole = crossed(q, kv, dy, queries, keys, options);
        std::vector<std::int32_t> some_queries, some_keys;
        for (std::size_t s = 0; s < c.keys.size(); ++s) {
          if (c.keys[s] == 0) {
            const std::int64_t n = c.queries[s] * d;
            BOOST_TEST(zero(whole.y.row(queries[s]), n));
            BOOST_TEST(zero(whole.gradients[0].row(queries[s]), n));
          } else {
            some_queries.push_back(c.queries[s]);
            some_keys.push_back(c.keys[s]);
          }
        }
        const Outcome some = crossed(with_keys(q, queries, keys), kv, with_keys(dy, queries, keys),
                                     offsets_of(some_queries), offsets_of(some_keys), options);
        BOOST_TEST(same_bits(with_keys(whole.y, queries, keys), some.y));
        BOOST_TEST(same_bits(with_keys(whole.gradients[0], queries, keys), some.gradients[0]));
        BOOST_TEST(same_bits(whole.gradients[1], some.gradients[1]));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(fused_attention_of_a_batch_without_keys_returns_zeros) {
  const std::int64_t d = 4;
  const Ids queries{0, 3, 3, 200}, keys{0, 0, 0, 0};
  const Array q = random_array({200, d}, 1), dy = random_array({200, d}, 2);
  const Outcome all = crossed(q, Array({0, 2 * d}), dy, queries, keys, {.heads = 2, .key = {}});
  BOOST_TEST(zero(all.y.data(), all.y.size()));
  BOOST_TEST(zero(all.gradients[0].data(), all.gradients[0].size()));
}

BOOST_AUTO_TEST_CASE(self_attention_ignores_empty_sequences) {
  const std::int64_t d = 4;
  const Array x = random_array({9, 3 * d}, 1), dy = random_array({9, d}, 2);
  const auto run = [&](const Ids& offsets, bool causal) {
    const Tensor qkv = Tensor::variable(x);
    return Outcome(
        self_attention(
            qkv, offsets,
            {.heads = 2, .pattern = causal ? causal_pattern() : full_pattern(), .key = {}}),
        dy, {qkv});
  };
  for (const bool causal : {false, true}) {
    const Outcome with = run({0, 0, 4, 4, 4, 9, 9}, causal), without = run({0, 4, 9}, causal);
    BOOST_TEST(same_bits(with.y, without.y));
    BOOST_TEST(same_bits(with.gradients[0], without.gradients[0]));
  }
}

// A query whose scores all overflow to −inf counts as a query that reads no key.
BOOST_AUTO_TEST_CASE(a_query_with_all_scores_minus_infinity_reads_no_key) {
  const std::int64_t d = 2;
  const real huge = std::sqrt(std::numeric_limits<real>::max()) * 8;
  for (const std::int32_t keys : {3, 1200}) {
    Array q = array_of({2, d}, {1, 2, 0, 0});
    std::fill_n(q.row(1), d, huge);
    Array kv({keys, 2 * d});
    for (std::int64_t t = 0; t < keys; ++t) {
      std::fill_n(kv.row(t), d, -huge);
      std::fill_n(kv.row(t) + d, d, static_cast<real>(t % 3));
    }
    const Outcome result = crossed(q, kv, array_of({2, d}, {0, 0, 1, -1}), {0, 2}, {0, keys}, {});
    BOOST_TEST(zero(result.y.row(1), d));
    BOOST_TEST(!zero(result.y.row(0), d));
    for (const Array& g : result.gradients) BOOST_TEST(zero(g.data(), g.size()));
  }
}

BOOST_AUTO_TEST_CASE(composed_attention_of_a_fully_masked_batch_element_is_zero) {
  const Array q = random_array({3, 5, 4}, 1), k = random_array({3, 7, 4}, 2),
              v = random_array({3, 7, 2}, 3), dy = random_array({3, 5, 2}, 4);
  Array mask = Array::zeros({3, 1, 7}), open = Array::zeros({2, 1, 7});
  std::fill_n(mask.data() + 7, 7, -inf);
  const auto unmasked = [](const Array& x) {  // batch elements 0 and 2
    const std::int64_t n = x.size() / 3;
    Array two({2, x.shape()[1], x.shape()[2]});
    std::copy_n(x.data(), n, two.data());
    std::copy_n(x.data() + 2 * n, n, two.data() + n);
    return two;
  };
  const Outcome all = composed(q, k, v, dy, mask),
                two = composed(unmasked(q), unmasked(k), unmasked(v), unmasked(dy), open);
  BOOST_TEST(zero(all.y.data() + 10, 10));
  BOOST_TEST(same_bits(unmasked(all.y), two.y));
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t n = all.gradients[i].size() / 3;
    BOOST_TEST(zero(all.gradients[i].data() + n, n));
    BOOST_TEST(same_bits(unmasked(all.gradients[i]), two.gradients[i]));
  }
}

BOOST_AUTO_TEST_CASE(composed_attention_of_fully_masked_rows_is_zero) {
  const std::int64_t queries = 70, keys = 33, d = 8;
  const Array q = random_array({queries, d}, 1), k = random_array({keys, d}, 2),
              v = random_array({keys, d}, 3), dy = random_array({queries, d}, 4);
  const Array open = Array::zeros({queries, keys});
  Array mask = open.clone(), silent = dy.clone();
  const std::vector<std::int64_t> hidden = {0, 17, 18, 69};
  for (const std::int64_t r : hidden) {
    std::fill_n(mask.row(r), keys, -inf);
    std::fill_n(silent.row(r), d, real(0));
  }
  const Outcome masked = composed(q, k, v, dy, mask), all = composed(q, k, v, silent, open);
  for (std::int64_t r = 0; r < queries; ++r) {
    if (std::find(hidden.begin(), hidden.end(), r) != hidden.end()) {
      BOOST_TEST(zero(masked.y.row(r), d));
      BOOST_TEST(zero(masked.gradients[0].row(r), d));
    } else {
      BOOST_TEST(same_bits(masked.y.row(r), all.y.row(r), d));
      BOOST_TEST(same_bits(masked.gradients[0].row(r), all.gradients[0].row(r), d));
    }
  }
  // A fully masked row contributes nothing to the gradients of keys and values.
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    BOOST_TEST(same_bits(masked.gradients[i], all.gradients[i]));
  }
}

BOOST_AUTO_TEST_CASE(softmax_and_log_softmax_of_a_row_of_minus_infinity_have_zero_gradient) {
  for (const std::int64_t n : {1, 2, 7, 16, 33, 1025}) {
    const Array ordinary = random_array({4, n}, 1), dy = random_array({4, n}, 2);
    Array x = ordinary.clone();
    std::fill_n(x.row(0), n, -inf);
    std::fill_n(x.row(2), n, -inf);
    const Tensor some = Tensor::variable(rows_of(ordinary, 1, 2)), both = Tensor::variable(x);
    for (const bool logarithm : {false, true}) {
      const auto f = [&](const Tensor& in) { return logarithm ? log_softmax(in) : softmax(in); };
      const Tensor y = f(both), y1 = f(some);
      const Array g = backward(y, dy)[both], g1 = backward(y1, rows_of(dy, 1, 2))[some];
      for (const std::int64_t r : {0, 2}) {
        for (std::int64_t i = 0; i < n; ++i)
          BOOST_TEST(y.value().row(r)[i] == (logarithm ? -inf : real(0)));
        BOOST_TEST(zero(g.row(r), n));
      }
      BOOST_TEST(finite(g));
      BOOST_TEST(same_bits(y.value().row(1), y1.value().data(), n));
      BOOST_TEST(same_bits(g.row(1), g1.data(), n));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
