// AttentionLog: the result of attention equals the logged weights P times the values V.
#include "autograd/ops/more/attention/attention_log.h"
#include "tests/autograd/attention_cases.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(attention_log)

namespace {

Tensor random_rows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 5});
  Array x({rows, columns});
  for (real& v : x.values()) v = static_cast<real>(2 * random.uniform() - 1);
  return Tensor(x);
}

/// Checks that y = P V for every query and head of one sequence. The sequence begins at row
/// `query_row` of y and at row `key_row` of kv; V begins at column `first` of kv.
void check_product(const AttentionRecord& record, std::int64_t sequence, const Array& y,
                   std::int64_t query_row, const Array& kv, std::int64_t key_row,
                   std::int64_t first) {
  const std::int64_t size = y.cols() / record.heads;
  double worst = 0;
  for (std::int64_t head = 0; head < record.heads; ++head) {
    const Array& p = record.of(sequence, head);
    for (std::int64_t i = 0; i < p.rows(); ++i) {
      for (std::int64_t c = 0; c < size; ++c) {
        double sum = 0;
        for (std::int64_t j = 0; j < p.cols(); ++j)
          sum += double{p.row(i)[j]} * kv.row(key_row + j)[first + head * size + c];
        worst = std::max(worst, std::abs(sum - y.row(query_row + i)[head * size + c]));
      }
    }
  }
  BOOST_TEST(worst < 1e-12);
}

}  // namespace

BOOST_AUTO_TEST_CASE(attention_result_equals_the_logged_weights_times_the_values) {
  const std::vector<std::int32_t> offsets{0, 7, 7, 12};
  const Tensor qkv = random_rows(12, 3 * 6, 1);
  for (const PatternCase& pattern : pattern_cases()) {
    if (pattern.name == "prefix") continue;  // compared with composed ops in test_attention.cpp
    BOOST_TEST_CONTEXT(pattern.name) {
      AttentionOptions options{.heads = 2, .pattern = pattern.pattern};
      std::vector<AttentionRecord> records;
      Array y;
      {
        const AttentionLog log(records);
        y = self_attention(qkv, offsets, options).value();
      }
      BOOST_REQUIRE(records.size() == 1);
      BOOST_TEST(records[0].self);
      BOOST_TEST(records[0].heads == 2);
      BOOST_TEST(records[0].weights.size() == 6);
      BOOST_TEST(records[0].of(1, 0).size() == 0);
      check_product(records[0], 0, y, 0, qkv.value(), 0, 12);
      check_product(records[0], 2, y, 7, qkv.value(), 7, 12);
      const Array& p = records[0].of(2, 1);
      for (std::int64_t i = 0; i < 5; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < 5; ++j) {
          sum += p.row(i)[j];
          BOOST_TEST((p.row(i)[j] > 0) == pattern.reads(i, j));
        }
        BOOST_TEST((std::abs(sum - 1) < 1e-12 || sum == 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cross_attention_weights_in_several_tiles_are_logged_before_dropout) {
  const std::vector<std::int32_t> queries{0, 70, 71}, keys{0, 2500, 2503};  // a tile has 1,024 keys
  const Tensor q = random_rows(71, 4, 2), kv = random_rows(2503, 8, 3);
  std::vector<AttentionRecord> records, dropped;
  Array y;
  {
    const AttentionLog log(records);
    y = cross_attention(q, kv, queries, keys, {.heads = 2}).value();
    const AttentionLog newest(dropped);
    cross_attention(q, kv, queries, keys, {.heads = 2, .dropout = real(0.5), .key = {.seed = 3}});
  }
  BOOST_REQUIRE(records.size() == 1);
  BOOST_REQUIRE(dropped.size() == 1);
  BOOST_TEST(!records[0].self);
  check_product(records[0], 0, y, 0, kv.value(), 0, 4);
  check_product(records[0], 1, y, 70, kv.value(), 2500, 4);
  for (std::size_t i = 0; i < records[0].weights.size(); ++i) {
    BOOST_TEST(std::ranges::equal(records[0].weights[i].values(), dropped[0].weights[i].values()));
  }
  BOOST_TEST((AttentionLog::active == nullptr));
}

BOOST_AUTO_TEST_CASE(weights_of_hard_and_sum_score_maps_and_of_top_k_are_logged) {
  const std::vector<std::int32_t> offsets{0, 9};
  const Tensor qkv = random_rows(9, 3 * 4, 4);
  for (const AttentionOptions& options : {AttentionOptions{.heads = 2, .map = ScoreMap::hard},
                                          AttentionOptions{.heads = 2, .top_k = 3},
                                          AttentionOptions{.heads = 2, .map = ScoreMap::sum}}) {
    std::vector<AttentionRecord> records;
    const AttentionLog log(records);
    const Array y = self_attention(qkv, offsets, options).value();
    check_product(records.at(0), 0, y, 0, qkv.value(), 0, 8);
    if (options.map == ScoreMap::sum) continue;
    for (std::int64_t i = 0; i < 9; ++i) {
      const real* const row = records[0].of(0, 1).row(i);
      BOOST_TEST(std::count_if(row, row + 9, [](real w) { return w > 0; }) ==
                 (options.top_k > 0 ? 3 : 1));
    }
  }
}

BOOST_AUTO_TEST_CASE(log_returns_the_query_key_and_value_of_each_head) {
  constexpr std::int64_t heads = 4, key_heads = 2, size = 3, d = heads * size,
                         key_d = key_heads * size;
  const std::vector<std::int32_t> offsets{0, 5};
  const AttentionOptions options{.heads = heads, .key_heads = key_heads};
  const Tensor qkv = random_rows(5, d + 2 * key_d, 1), q = random_rows(5, d, 2),
               kv = random_rows(5, 2 * key_d, 3);
  std::vector<AttentionRecord> records;
  const AttentionLog log(records);
  self_attention(qkv, offsets, options);
  cross_attention(q, kv, offsets, offsets, options);
  BOOST_REQUIRE(records.size() == 2u);
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t own = head * size, shared = head / 2 * size;  // two heads share a key head
    for (const std::int64_t row : {0, 4}) {
      const real *const self = qkv.value().row(row), *const pair = kv.value().row(row);
      BOOST_TEST(records[0].query(row, head) == self + own);
      BOOST_TEST(records[0].key(row, head) == self + d + shared);
      BOOST_TEST(records[0].value(row, head) == self + d + key_d + shared);
      BOOST_TEST(records[1].query(row, head) == q.value().row(row) + own);
      BOOST_TEST(records[1].key(row, head) == pair + shared);
      BOOST_TEST(records[1].value(row, head) == pair + key_d + shared);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
