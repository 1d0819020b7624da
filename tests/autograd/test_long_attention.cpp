// Fused attention over sequences so long that queries are split into blocks and keys into tiles.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "autograd/kernels/fast/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/mask.h"
#include "autograd/ops/more/attention/prefix.h"
#include "autograd/ops/more/attention/window.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(long_attention)

namespace {

constexpr bool in_double = sizeof(real) == 8;
constexpr std::int64_t d = 4;
const double tolerance = in_double ? 1e-12 : 2e-5;

double inner(const Array& a, const Array& b) {
  return double{kernels::dot(a.data(), b.data(), a.size())};
}

}  // namespace

BOOST_AUTO_TEST_CASE(attention_in_blocks_and_tiles_equals_composed_attention) {
  struct Case {
    std::int64_t queries, keys;
    bool causal;
  };
  for (const Case& c : {Case{128, 128, true}, Case{129, 129, true}, Case{200, 200, false},
                        Case{1023, 1023, true}, Case{1025, 1025, true}, Case{1100, 1100, false},
                        Case{2111, 2111, true}, Case{3, 2500, false}, Case{70, 2049, false}}) {
    BOOST_TEST_CONTEXT(c.queries << " queries, " << c.keys << " keys"
                                 << (c.causal ? ", causal" : "")) {
      const Tensor q = Tensor::variable(random_array({c.queries, d}, 1)),
                   k = Tensor::variable(random_array({c.keys, d}, 2)),
                   v = Tensor::variable(random_array({c.keys, d}, 3));
      const Array dy = random_array({c.queries, d}, 4);
      const Tensor composed = attention(q, k, v, c.causal ? causal_mask(c.keys) : Array()).output;
      const AttentionOptions options{.pattern = c.causal ? causal_pattern() : full_pattern()};
      const std::vector<std::int32_t> rows{0, static_cast<std::int32_t>(c.queries)},
          columns{0, static_cast<std::int32_t>(c.keys)};
      const Tensor kv = concat(std::vector<Tensor>{k, v}, 1);
      const Tensor fused =
          c.causal ? self_attention(concat(std::vector<Tensor>{q, k, v}, 1), rows, options)
                   : cross_attention(q, kv, rows, columns, options);
      BOOST_TEST(same(fused.value(), composed.value(), tolerance));
      const Gradients a = backward(fused, dy), b = backward(composed, dy);
      for (const Tensor& x : {q, k, v}) BOOST_TEST(same(a[x], b[x], 100 * tolerance));
    }
  }
}

BOOST_AUTO_TEST_CASE(backward_drops_the_same_attention_weights_as_forward_in_every_tile) {
  if (!in_double) return;  // finite differences are too coarse in float
  const std::int64_t n = 1300;
  const AttentionOptions options{
      .heads = 2,
      .pattern = causal_pattern(),
      .dropout = real(0.3),
      .key = {.seed = 9, .stream = Stream::dropout, .index = 2, .part = 0}};
  const std::vector<std::int32_t> offsets{0, 100, static_cast<std::int32_t>(n)};
  const Array x = random_array({n, 3 * 2 * d}, 1), direction = random_array(x.shape(), 2),
              dy = random_array({n, 2 * d}, 3);
  const auto moved = [&](real step) {
    Array at = x.clone();
    for (std::int64_t i = 0; i < at.size(); ++i) at.data()[i] += step * direction.data()[i];
    return inner(self_attention(Tensor(at), offsets, options).value(), dy);
  };
  const real step = real(1e-5);
  const double slope = (moved(step) - moved(-step)) / (2 * double{step});
  const Tensor variable = Tensor::variable(x);
  const Gradients gradients = backward(self_attention(variable, offsets, options), dy);
  BOOST_TEST(inner(gradients[variable], direction) == slope, boost::test_tools::tolerance(1e-7));
}

BOOST_AUTO_TEST_CASE(no_two_sequences_heads_or_tiles_share_a_dropout_mask) {
  // The single query of a sequence has equal weights for all keys, so dv of a key is 0 if and only
  // if the key's weight was dropped.
  constexpr std::int64_t heads = 2, sequences = 2, tiles = 2, tile = 1024, width = heads * d;
  const AttentionOptions options{
      .heads = heads,
      .dropout = real(0.5),
      .key = {.seed = 9, .stream = Stream::dropout, .index = 2, .part = 0}};
  const std::vector<std::int32_t> queries{0, 1, 2}, keys{0, tiles * tile, 2 * tiles * tile};
  const Tensor kv = Tensor::variable(random_array({sequences * tiles * tile, 2 * width}, 1));
  const Array zero = Array::zeros({sequences, width}), one = Array::full({sequences, width}, 1);
  const Array dkv = backward(cross_attention(Tensor(zero), kv, queries, keys, options), one)[kv];
  std::vector<std::vector<bool>> masks;
  for (std::int64_t first = 0; first < dkv.rows(); first += tile) {
    for (std::int64_t head = 0; head < heads; ++head) {
      std::vector<bool> kept;
      for (std::int64_t key = first; key < first + tile; ++key)
        kept.push_back(dkv.row(key)[width + head * d] != 0);
      BOOST_TEST(std::abs(std::count(kept.begin(), kept.end(), true) - tile / 2) < 100);
      masks.push_back(kept);
    }
  }
  std::sort(masks.begin(), masks.end());
  BOOST_TEST((std::adjacent_find(masks.begin(), masks.end()) == masks.end()));
}

BOOST_AUTO_TEST_CASE(heads_with_each_score_map_equal_attention_of_each_head_alone) {
  const std::int64_t size = 3;
  for (const ScoreMap map : {ScoreMap::softmax, ScoreMap::sum, ScoreMap::hard}) {
    for (const std::int64_t n : {6, 140}) {        // one block; several blocks
      const auto part = [&](std::uint64_t seed) {  // positive values keep Σ S away from 0
        Array values = random_array({n, 2 * size}, seed);
        for (real& v : values.values()) v = std::abs(v) + real(0.1);
        return Tensor::variable(values);
      };
      const Tensor q = part(1), k = part(2), v = part(3);
      const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(n)};
      const auto attend = [&](std::int64_t heads, const Tensor& a, const Tensor& b,
                              const Tensor& c) {
        return self_attention(concat({a, b, c}, 1), offsets,
                              {.heads = heads, .pattern = causal_pattern(), .map = map});
      };
      std::vector<Tensor> alone;
      for (std::int64_t at = 0; at < 2 * size; at += size)
        alone.push_back(attend(1, slice(q, 1, at, at + size), slice(k, 1, at, at + size),
                               slice(v, 1, at, at + size)));
      const Tensor both = attend(2, q, k, v), expected = concat(alone, 1);
      const Array dy = random_array({n, 2 * size}, 4);
      const Gradients found = backward(both, dy), wanted = backward(expected, dy);
      BOOST_TEST_CONTEXT(name_of(map) << ", " << n << " rows") {
        BOOST_TEST(same(both.value(), expected.value(), tolerance));
        for (const Tensor& x : {q, k, v}) BOOST_TEST(same(found[x], wanted[x], 100 * tolerance));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(masks_and_prefixes_may_differ_between_sequences) {
  const std::int32_t n = 150;
  const Tensor qkv(random_array({2 * n, 3 * d}, 1));
  const auto check = [&](const PatternPtr& both, const PatternPtr& of_first,
                         const PatternPtr& of_second) {
    const std::vector<std::int32_t> two{0, n, 2 * n}, one{0, n};
    const Array y = self_attention(qkv, two, {.pattern = both}).value();
    for (const std::int64_t s : {0, 1}) {
      const Tensor rows = slice(qkv, 0, s * n, (s + 1) * n);
      const Array alone =
          self_attention(rows, one, {.pattern = s == 0 ? of_first : of_second}).value();
      BOOST_TEST(same(y.sliced(s * n, (s + 1) * n), alone, tolerance), "sequence " << s);
    }
  };
  check(prefix_pattern({20, 90}), prefix_pattern({20}), prefix_pattern({90}));
  const auto later = mask_pattern([](auto, auto i, auto j) { return j >= i; });
  check(mask_pattern([](auto s, auto i, auto j) { return s == 0 ? j <= i : j >= i; }),
        causal_pattern(), later);
}

BOOST_AUTO_TEST_CASE(queries_with_the_last_positions_equal_the_last_rows_of_self_attention) {
  const std::int64_t n = 300;
  const Tensor q(random_array({n, d}, 1)), kv(random_array({n, 2 * d}, 2));
  const AttentionOptions options{
      .queries_last = true, .pattern = window_pattern(90, 0), .terms = {std::make_shared<Alibi>()}};
  const std::vector<std::int32_t> queries{0, 100, 270}, keys{0, 120, 300}, few_keys{0, 250, 300};
  const Array whole = self_attention(concat({q, kv}, 1), keys, options).value();
  // The first 20 and 10 queries of the sequences were computed before. The second sequence has
  // several blocks of queries.
  const Tensor last = concat({slice(q, 0, 20, 120), slice(q, 0, 130, n)}, 0);
  const Array found = cross_attention(last, kv, queries, keys, options).value();
  BOOST_TEST(same(found.sliced(0, 100), whole.sliced(20, 120), tolerance));
  BOOST_TEST(same(found.sliced(100, 270), whole.sliced(130, n), tolerance));
  EXPECT_FAIL(cross_attention(last, kv, queries, few_keys, options),
              "[cross_attention] with queries_last, expected at least as many keys as queries, got "
              "50 and 170");
}

BOOST_AUTO_TEST_SUITE_END()
