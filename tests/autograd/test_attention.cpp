// Compares fused attention with composed ops, and decoding with attention over whole sequences, for
// every pattern and score term.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "autograd/ops/more/attention/grid_bias.h"
#include "tests/autograd/attention_cases.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(attention_kinds)

namespace {

using Ids = std::vector<std::int32_t>;

constexpr bool in_double = sizeof(real) == 8;
const double tolerance = in_double ? 1e-12 : 2e-5;

/// Attention within one sequence, computed by its definition from separately tested ops. q is
/// [queries, heads · size]; k and v are [keys, key_heads · size].
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const HeadLayout& layout,
                const PatternCase& pattern, const std::vector<TermCase>& terms,
                const std::vector<Tensor>& parameters) {
  const std::int64_t rows = q.shape()[0], keys = k.shape()[0], size = layout.size;
  Array mask = Array::zeros({rows, keys});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!pattern.reads(i, j)) mask.row(i)[j] = -std::numeric_limits<real>::infinity();
    }
  }
  std::vector<Tensor> heads;
  for (std::int64_t h = 0; h < layout.heads; ++h) {
    const std::int64_t at = layout.key_head(h) * size;
    const Tensor own = slice(q, 1, h * size, (h + 1) * size);
    Tensor s = scale(matmul(own, slice(k, 1, at, at + size), false, true),
                     1 / std::sqrt(static_cast<real>(size)));
    for (std::size_t i = 0; i < terms.size(); ++i)
      s = add(s, terms[i].composed(parameters[i], own, keys, h, layout.heads));
    heads.push_back(matmul(softmax(s, mask), slice(v, 1, at, at + size)));
  }
  return concat(heads, 1);
}

/// One case (q, k and v of several sequences, a pattern and terms), computed by fused attention, by
/// composed ops and in decoding steps.
struct Case {
  HeadLayout layout;
  PatternCase pattern;
  std::vector<TermCase> terms;
  Ids offsets;
  Tensor q, k, v;
  std::vector<Tensor> parameters;
  AttentionOptions options;

  Case(HeadLayout l, PatternCase p, std::vector<TermCase> t, Ids at)
      : layout(l), pattern(std::move(p)), terms(std::move(t)), offsets(std::move(at)) {
    const std::int64_t n = offsets.back();
    q = Tensor::variable(random_array({n, layout.heads * layout.size}, 1));
    k = Tensor::variable(random_array({n, layout.key_heads * layout.size}, 2));
    v = Tensor::variable(random_array({n, layout.key_heads * layout.size}, 3));
    options = {.heads = layout.heads, .key_heads = layout.key_heads, .pattern = pattern.pattern};
    for (const TermCase& term : terms) {
      parameters.push_back(term.parameter.rank() == 0
                               ? Tensor()
                               : Tensor::variable(random_array(term.parameter, 7)));
      options.terms.push_back(term.make(parameters.back()));
    }
  }
  Tensor self() const {
    return self_attention(concat(std::vector<Tensor>{q, k, v}, 1), offsets, options);
  }
  Tensor cross() const {
    return cross_attention(q, concat(std::vector<Tensor>{k, v}, 1), offsets, offsets, options);
  }
  Tensor twin() const {
    std::vector<Tensor> sequences;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const auto part = [&](const Tensor& x) { return slice(x, 0, offsets[s], offsets[s + 1]); };
      sequences.push_back(composed(part(q), part(k), part(v), layout, pattern, terms, parameters));
    }
    return concat(sequences, 0);
  }

  void check_twin() const {
    const Array dy = random_array(q.shape(), 5);
    const Tensor plain = twin();
    const Gradients expected = backward(plain, dy);
    for (const Tensor& fused : {self(), cross()}) {
      BOOST_TEST(same(fused.value(), plain.value(), tolerance));
      // The graph is kept because self() and cross() share the ops of the terms.
      const Gradients found = backward(fused, dy, true);
      for (const Tensor& x : {q, k, v}) BOOST_TEST(same(found[x], expected[x], 100 * tolerance));
      for (const Tensor& x : parameters) {
        if (x.defined()) BOOST_TEST(same(found[x], expected[x], 1000 * tolerance));
      }
    }
  }
  /// Recomputes each output row with AttentionStep, from keys and values stored row by row. With
  /// `growing`, query i is computed when only keys 0 to i exist.
  void check_steps(bool growing) const {
    const Array whole = self().value();
    AttentionStep step(options, q.shape()[1]);
    std::vector<std::vector<real>> cache;  // each row: keys, then values
    for (std::int64_t t = 0; t < k.shape()[0]; ++t) {
      std::vector<real> row(k.value().row(t), k.value().row(t) + k.shape()[1]);
      row.insert(row.end(), v.value().row(t), v.value().row(t) + v.shape()[1]);
      cache.push_back(std::move(row));
    }
    Array rows(whole.shape());
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const std::int64_t begin = offsets[s], length = offsets[s + 1] - begin;
      const auto row = [&](std::int64_t t) {
        return cache[static_cast<std::size_t>(begin + t)].data();
      };
      for (std::int64_t i = 0; i < length; ++i)
        step(q.value().row(begin + i), static_cast<std::int64_t>(s), i, growing ? i + 1 : length,
             row, rows.row(begin + i));
    }
    BOOST_TEST(same(rows, whole, tolerance));
  }
};

/// Calls body for every pattern without terms, with each term and with all terms. Of the head
/// layouts, one has as many key heads as query heads; the others have grouped heads.
template <class Body>
void for_each_case(const Ids& offsets, Body body) {
  for (const HeadLayout layout : {HeadLayout{2, 2, 3}, HeadLayout{6, 2, 2}, HeadLayout{3, 1, 4}}) {
    const std::vector<TermCase> all = term_cases(layout);
    std::vector<std::vector<TermCase>> choices{{}, all};
    for (const TermCase& one : all) choices.push_back({one});
    for (const PatternCase& pattern : pattern_cases()) {
      for (const std::vector<TermCase>& terms : choices) {
        BOOST_TEST_CONTEXT("heads: " << layout.heads << ", key heads: " << layout.key_heads << ", "
                                     << pattern.name << ", terms: " << terms.size()
                                     << (terms.size() == 1 ? " (" + terms[0].name + ")" : "")) {
          body(Case(layout, pattern, terms, offsets));
        }
      }
    }
  }
}

/// Checks that decoding one row at a time returns the rows of `expected`, for causal attention with
/// one head.
void check_steps(const AttentionOptions& options, const Array& q, const Array& k, const Array& v,
                 const Array& expected) {
  const std::int64_t size = q.cols();
  AttentionStep step(options, size);
  std::vector<std::vector<real>> rows;  // each row: keys, then values
  for (std::int64_t t = 0; t < q.rows(); ++t) {
    rows.emplace_back(k.row(t), k.row(t) + size);
    rows.back().insert(rows.back().end(), v.row(t), v.row(t) + size);
    Array out({1, size});
    const auto row = [&](std::int64_t at) { return rows[static_cast<std::size_t>(at)].data(); };
    step(q.row(t), 0, t, t + 1, row, out.data());
    BOOST_TEST(same(out, expected.sliced(t, t + 1), tolerance));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_scale_option_replaces_the_default_scale_of_the_scores) {
  const Tensor q(random_array({6, 4}, 1)), kv(random_array({6, 8}, 2));
  const Ids offsets{0, 6};
  // A larger scale is equivalent to a larger query.
  BOOST_TEST(
      same(cross_attention(q, kv, offsets, offsets, {.heads = 2, .scale = 3}).value(),
           cross_attention(scale(q, real(3 * std::sqrt(2.0))), kv, offsets, offsets, {.heads = 2})
               .value(),
           tolerance));
}

BOOST_AUTO_TEST_CASE(the_scale_option_applies_to_relative_keys_and_all_gradients) {
  const std::int64_t n = 140, size = 4;  // several blocks of queries
  const Ids offsets{0, static_cast<std::int32_t>(n)};
  const Tensor q = Tensor::variable(random_array({n, size}, 1)),
               k = Tensor::variable(random_array({n, size}, 2)),
               v = Tensor::variable(random_array({n, size}, 3)),
               keys = Tensor::variable(random_array({5, size}, 4)),
               shift = Tensor::variable(random_array({size}, 5));
  const auto with = [&](real factor, const Tensor& w) {
    return AttentionOptions{.scale = factor,
                            .pattern = causal_pattern(),
                            .terms = {std::make_shared<RelativeKeys>(keys, -2, w)}};
  };
  const Tensor kv = concat({k, v}, 1);
  // A scale of 1 instead of 1/√4 is equivalent to twice the query and the shift.
  const AttentionOptions scaled = with(1, shift), plain = with(0, scale(shift, 2));
  const Tensor found = cross_attention(q, kv, offsets, offsets, scaled),
               expected = cross_attention(scale(q, 2), kv, offsets, offsets, plain);
  BOOST_TEST(same(found.value(), expected.value(), 10 * tolerance));
  const Array dy = random_array({n, size}, 6);
  const Gradients g = backward(found, dy, true), h = backward(expected, dy);
  for (const Tensor& x : {q, k, v, keys, shift}) BOOST_TEST(same(g[x], h[x], 1000 * tolerance));
  check_steps(scaled, q.value(), k.value(), v.value(), found.value());
}

BOOST_AUTO_TEST_CASE(fused_attention_equals_composed_ops) {
  for_each_case({0, 7, 7, 8, 19}, [](const Case& c) { c.check_twin(); });
}

BOOST_AUTO_TEST_CASE(fused_attention_in_blocks_and_tiles_equals_composed_ops) {
  for (const HeadLayout layout : {HeadLayout{2, 2, 3}, HeadLayout{4, 2, 2}}) {
    for (const PatternCase& pattern : pattern_cases()) {
      if (pattern.name == "arbitrary pairs") continue;  // it has dozens of stretches per block
      BOOST_TEST_CONTEXT(pattern.name) {
        Case(layout, pattern, term_cases(layout), {0, 190, 200}).check_twin();
      }
    }
  }
  const HeadLayout layout{1, 1, 2};
  for (const std::size_t i : {0, 4, 6}) {
    const PatternCase pattern = pattern_cases()[i];
    BOOST_TEST_CONTEXT(pattern.name)
    Case(layout, pattern, {term_cases(layout)[0]}, {0, 1100}).check_twin();
  }
}

BOOST_AUTO_TEST_CASE(a_decoding_step_returns_the_output_row_of_the_whole_sequence) {
  for_each_case({0, 7, 7, 8, 19}, [](const Case& c) {
    c.check_steps(false);
    if (!c.pattern.looks_ahead) c.check_steps(true);
  });
}

BOOST_AUTO_TEST_CASE(a_decoding_step_without_keys_returns_zeros) {
  AttentionStep step({.heads = 2, .terms = {std::make_shared<Alibi>()}}, 4);
  const Array q = random_array({4}, 1);
  Array out = Array::full({4}, 7);
  step(
      q.data(), 0, 0, 0, [](std::int64_t) -> const real* { return nullptr; }, out.data());
  BOOST_TEST(same(out, Array::zeros({4})));
}

BOOST_AUTO_TEST_CASE(stretches_cover_exactly_the_keys_that_the_pattern_reads) {
  for (const PatternCase& pattern : pattern_cases()) {
    for (const std::int64_t keys : {0, 1, 9, 40}) {
      for (const std::int64_t rows : {1, 4, 40}) {
        for (std::int64_t first = 0; first < 40; first += rows) {
          const QueryBlock block{0, first, rows, keys};
          Stretches stretches;
          (*pattern.pattern)(block, stretches);
          std::vector<std::vector<int>> times(static_cast<std::size_t>(rows),
                                              std::vector<int>(static_cast<std::size_t>(keys)));
          for (std::size_t i = 0; i < stretches.size(); ++i) {
            const KeyRange all = stretches.keys(i);
            BOOST_TEST((0 <= all.begin && all.begin < all.end && all.end <= keys));
            for (std::int64_t r = 0; r < rows; ++r) {
              const KeyRange read = stretches.rows(i)[r];
              for (std::int64_t j = read.begin; j < read.end; ++j) {
                BOOST_TEST((all.begin <= j && j < all.end));
                ++times[static_cast<std::size_t>(r)][static_cast<std::size_t>(j)];
              }
            }
          }
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < keys; ++j) {
              const int found = times[static_cast<std::size_t>(r)][static_cast<std::size_t>(j)];
              BOOST_TEST(found == int{pattern.reads(first + r, j)},
                         pattern.name << ", query " << first + r << ", key " << j);
            }
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_a_window_pattern_visit_no_key_outside_the_window) {
  const std::int64_t n = 100'000, back = 100, ahead = 20, rows = 64;
  std::int64_t visited = 0;
  for (std::int64_t first = 0; first + rows <= n; first += rows) {
    Stretches stretches;
    (*window_pattern(back, ahead))({0, first, rows, n}, stretches);
    BOOST_REQUIRE_EQUAL(stretches.size(), 1u);
    visited += stretches.keys(0).end - stretches.keys(0).begin;
  }
  BOOST_TEST(visited <= n / rows * (rows + back + ahead));
}

BOOST_AUTO_TEST_CASE(gradients_are_zero_for_exactly_the_keys_and_values_outside_the_window) {
  for (const std::int64_t n : {12, 300}) {
    const PatternCase pattern{"window", window_pattern(4, 1), {}, true};
    const Case c({2, 1, 3}, pattern, {}, {0, static_cast<std::int32_t>(n)});
    for (const std::int64_t i : {std::int64_t{0}, n / 2, n - 1}) {
      Array dy = Array::zeros(c.q.shape());
      for (std::int64_t column = 0; column < dy.cols(); ++column) dy.row(i)[column] = 1;
      const Gradients g = backward(c.self(), dy);
      for (const Tensor& x : {c.k, c.v}) {
        for (std::int64_t j = 0; j < n; ++j) {
          const Array all = g[x];
          const bool zero = std::all_of(all.row(j), all.row(j) + all.cols(),
                                        [](real value) { return value == 0; });
          BOOST_TEST(zero == (j < i - 4 || j > i + 1), "query " << i << ", key " << j);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(alibi_slopes_equal_those_of_the_paper_and_its_code) {
  for (std::int64_t h = 0; h < 8; ++h)
    BOOST_TEST(Alibi::slope(h, 8) == static_cast<real>(std::exp2(-static_cast<double>(h + 1))));
  BOOST_TEST(Alibi::slope(0, 1) == static_cast<real>(std::exp2(-8.0)));
  // If the number of heads is not a power of two, the slopes equal those of the published code.
  const double three[] = {std::exp2(-4.0), std::exp2(-8.0), std::exp2(-2.0)};
  for (std::int64_t h = 0; h < 3; ++h)
    BOOST_TEST(Alibi::slope(h, 3) == static_cast<real>(three[h]));
  for (std::int64_t h = 8; h < 12; ++h) {
    const double exponent = -0.5 * static_cast<double>(2 * (h - 8) + 1);
    BOOST_TEST(Alibi::slope(h, 12) == static_cast<real>(std::exp2(exponent)));
  }
}

BOOST_AUTO_TEST_CASE(relative_position_bias_states_its_formula) {
  const GridBias term(Tensor(Array::zeros({1, 1})), std::make_shared<GridWindows>());
  BOOST_TEST(term.formula({}).formula == "B_ij = b[y_i − y_j, x_i − x_j]");
}

BOOST_AUTO_TEST_CASE(patterns_and_top_k_that_exclude_no_key_change_no_bit_of_the_result) {
  for (const std::int64_t n : {5, 130, 1500}) {
    const Ids offsets{0, static_cast<std::int32_t>(n)};
    const Tensor qkv = Tensor::variable(random_array({n, 6}, 1));
    const Array dy = random_array({n, 2}, 2);
    for (const bool causal : {false, true}) {
      const auto run = [&](const PatternPtr& pattern, std::int64_t top_k) {
        const Tensor y = self_attention(qkv, offsets, {.pattern = pattern, .top_k = top_k});
        return std::pair(y.value(), backward(y, dy)[qkv]);
      };
      const PatternPtr full = causal ? causal_pattern() : full_pattern();
      const auto expected = run(full, 0);
      const BigBirdOptions bird{.block = 16, .side_blocks = n / 16, .causal = causal};
      for (const auto& found : {run(full, n), run(window_pattern(n, causal ? 0 : n), 0),
                                run(bigbird_pattern(bird), 0)}) {
        BOOST_TEST(same_bits(found.first, expected.first));
        BOOST_TEST(same_bits(found.second, expected.second));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(random_blocks_of_bigbird_are_limited_in_number_and_equal_in_all_sequences) {
  constexpr std::int64_t n = 4096, block = 64;
  for (const bool causal : {false, true}) {
    const PatternPtr pattern =
        bigbird_pattern({.block = block, .random_blocks = 3, .causal = causal});
    std::int64_t far = 0;
    for (std::int64_t first = 0; first < n; first += block) {
      Stretches once, again;
      (*pattern)({0, first, block, n}, once);
      (*pattern)({7, first, block, n}, again);
      BOOST_REQUIRE_EQUAL(once.size(), again.size());
      std::int64_t keys = 0;
      for (std::size_t i = 0; i < once.size(); ++i) {
        BOOST_TEST(once.keys(i).begin == again.keys(i).begin);
        keys += once.keys(i).end - once.keys(i).begin;
        if (causal) BOOST_TEST(once.keys(i).end <= first + block);
        far += once.keys(i).begin >= 2 * block && std::abs(once.keys(i).begin - first) > block;
      }
      if (first >= 2 * block) BOOST_TEST(keys <= (2 + 3 + 3) * block);
    }
    BOOST_TEST(far > n / block);  // the random blocks reach beyond the window
  }
}

// Queries of neighbouring blocks read different random blocks, and every block of keys is read by
// some distant query.
BOOST_AUTO_TEST_CASE(random_blocks_of_bigbird_differ_between_blocks_of_queries) {
  constexpr std::int64_t count = 128, block = 4, n = count * block;
  for (const bool causal : {false, true}) {
    const PatternPtr pattern = bigbird_pattern({.block = block,
                                                .global_blocks = 1,
                                                .side_blocks = 1,
                                                .random_blocks = 3,
                                                .causal = causal});
    std::set<std::int64_t> before, all;  // blocks outside the window and the global blocks
    std::int64_t repeated = 0;           // blocks of queries that share one with the block before
    for (std::int64_t queries = 0; queries < count; ++queries) {
      Stretches stretches;
      (*pattern)({0, queries * block, block, n}, stretches);
      std::set<std::int64_t> far;
      for (std::size_t i = 0; i < stretches.size(); ++i) {
        for (std::int64_t b = stretches.keys(i).begin / block; b * block < stretches.keys(i).end;
             ++b)
          if (b > 0 && std::abs(b - queries) > 1) far.insert(b);
      }
      if (queries == 0) continue;  // a global block reads all keys
      repeated += std::ranges::any_of(far, [&](std::int64_t b) { return before.contains(b); });
      all.insert(far.begin(), far.end());
      before = far;
    }
    BOOST_TEST(repeated < count / 4);
    BOOST_TEST(std::ssize(all) > count * 3 / 4);
  }
}

BOOST_AUTO_TEST_CASE(attention_with_top_k_reads_only_the_keys_of_the_largest_scores) {
  for (const std::int64_t n : {6, 140, 1300}) {
    const Tensor q = Tensor::variable(random_array({n, 3}, 1)),
                 k = Tensor::variable(random_array({n, 3}, 2)),
                 v = Tensor::variable(random_array({n, 3}, 3));
    const Ids offsets{0, static_cast<std::int32_t>(n)};
    const AttentionOptions options{.pattern = causal_pattern(), .top_k = 4};
    const Tensor scores = matmul(q, k, false, true);
    Array mask = Array::full({n, n}, -std::numeric_limits<real>::infinity());
    for (std::int64_t i = 0; i < n; ++i) {
      Array row({1, i + 1});
      std::copy_n(scores.value().row(i), i + 1, row.data());
      for (const std::int32_t j : top_k(row, std::min<std::int64_t>(4, i + 1)).ids)
        mask.row(i)[j] = 0;
    }
    const Array dy = random_array({n, 3}, 4);
    const Tensor fused = self_attention(concat(std::vector<Tensor>{q, k, v}, 1), offsets, options),
                 plain = attention(q, k, v, mask).output;
    BOOST_TEST(same(fused.value(), plain.value(), tolerance));
    const Gradients found = backward(fused, dy), expected = backward(plain, dy);
    for (const Tensor& x : {q, k, v}) BOOST_TEST(same(found[x], expected[x], 100 * tolerance));
    check_steps(options, q.value(), k.value(), v.value(), fused.value());
  }
}

BOOST_AUTO_TEST_CASE(attention_with_each_score_map_equals_its_definition) {
  for (const ScoreMap map : {ScoreMap::softmax, ScoreMap::sum, ScoreMap::hard}) {
    for (const std::int64_t n : {6, 140}) {         // one block; several blocks
      const real p = n == 6 ? real(0.3) : real(0);  // in one block, the mask is that of `dropout`
      const RandomKey key{.seed = 5, .stream = Stream::check};
      const auto part = [&](std::uint64_t seed) {  // positive values keep Σ S away from 0
        Array values = random_array({n, 3}, seed);
        for (real& v : values.values()) v = std::abs(v) + real(0.1);
        return Tensor::variable(values);
      };
      const Tensor q = part(1), k = part(2), v = part(3);
      const AttentionOptions options{
          .pattern = causal_pattern(), .map = map, .dropout = p, .key = key};
      const Tensor s = scale(matmul(q, k, false, true), 1 / std::sqrt(real(3)));
      Array below = Array::zeros({n, n});
      for (std::int64_t i = 0; i < n; ++i) std::fill_n(below.row(i), i + 1, real(1));
      Tensor weights = softmax(s, causal_mask(n));
      if (map == ScoreMap::sum) {
        const Tensor read = mul(s, Tensor(below));
        weights = div(read, sum(read, 1, true));
      } else if (map == ScoreMap::hard) {
        Array step = Array::zeros({n, n});
        const std::vector<std::int32_t> largest = argmax(weights.value());
        for (std::int64_t i = 0; i < n; ++i) step.row(i)[largest[static_cast<std::size_t>(i)]] = 1;
        weights = weights + Tensor((Tensor(step) - Tensor(weights.value())).value());
      }
      const Tensor expected = matmul(dropout(weights, p, key), v);
      const Tensor fused = self_attention(concat(std::vector<Tensor>{q, k, v}, 1),
                                          Ids{0, static_cast<std::int32_t>(n)}, options);
      const Array dy = random_array({n, 3}, 4);
      const Gradients found = backward(fused, dy), wanted = backward(expected, dy);
      BOOST_TEST_CONTEXT(name_of(map) << ", " << n << " rows") {
        BOOST_TEST(same(fused.value(), expected.value(), tolerance));
        for (const Tensor& x : {q, k, v}) BOOST_TEST(same(found[x], wanted[x], 100 * tolerance));
        if (p == 0) check_steps(options, q.value(), k.value(), v.value(), fused.value());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(linear_attention_equals_its_definition) {
  for (const bool causal : {false, true}) {
    for (const HeadLayout layout : {HeadLayout{1, 1, 3}, HeadLayout{4, 2, 2}}) {
      const std::int64_t n = 150, size = layout.size;  // several chunks
      const Tensor qkv =
          Tensor::variable(random_array({n, (layout.heads + 2 * layout.key_heads) * size}, 1));
      const AttentionOptions options{.heads = layout.heads, .key_heads = layout.key_heads};
      const Tensor found =
          linear_attention(qkv, Ids{0, 0, static_cast<std::int32_t>(n)}, causal, options);
      Array mask = Array::full({n, n}, 1);
      for (std::int64_t i = 0; causal && i < n; ++i)
        std::fill(mask.row(i) + i + 1, mask.row(i) + n, real(0));
      const auto phi = [](const Tensor& x) {  // elu(x) + 1
        return add(relu(x), exp(minimum(x, Tensor(Array::zeros({1})))));
      };
      const auto part = [&](std::int64_t head) {
        return slice(qkv, 1, head * size, (head + 1) * size);
      };
      std::vector<Tensor> heads;
      for (std::int64_t h = 0; h < layout.heads; ++h) {
        const std::int64_t key = layout.heads + layout.key_head(h);
        const Tensor weights = mul(matmul(phi(part(h)), phi(part(key)), false, true), Tensor(mask));
        heads.push_back(div(matmul(weights, part(key + layout.key_heads)),
                            add(sum(weights, 1, true), Tensor(Array::full({1}, real(1e-6))))));
      }
      const Tensor expected = concat(heads, 1);
      BOOST_TEST(same(found.value(), expected.value(), 10 * tolerance));
      const Array dy = random_array(found.shape(), 2);
      BOOST_TEST(same(backward(found, dy)[qkv], backward(expected, dy)[qkv], 1000 * tolerance));
      if (!causal) continue;
      const LinearAttentionStep step(options, layout.heads * size);
      std::vector<real> state(static_cast<std::size_t>(step.state_size()), real(0));
      for (std::int64_t t = 0; t < n; ++t) {
        Array out({1, layout.heads * size});
        step(qkv.value().row(t), qkv.value().row(t) + layout.heads * size, state.data(),
             out.data());
        BOOST_TEST(same(out, found.value().sliced(t, t + 1), 10 * tolerance));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(attention_with_top_k_reads_the_earlier_keys_if_scores_are_equal) {
  const Tensor qkv(Array({4, 3}, std::vector<real>{0, 0, 1, 0, 0, 2, 0, 0, 4, 0, 0, 8}));
  const Array y = self_attention(qkv, Ids{0, 4}, {.top_k = 2}).value();
  for (const real value : y.values()) BOOST_TEST(value == real(1.5));
}

BOOST_AUTO_TEST_CASE(invalid_operands_and_options_of_attention_are_refused) {
  const Tensor x = Tensor(random_array({5, 12}, 1)), kv = Tensor(random_array({5, 8}, 2));
  const Ids whole{0, 5};
  EXPECT_FAIL(self_attention(Tensor(random_array({5}, 1)), whole, {}),
              "[self_attention] expected qkv [tokens, (heads + 2 key_heads) size], got [5]");
  EXPECT_FAIL(self_attention(x, whole, {.heads = 5}),
              "[self_attention] expected qkv [tokens, (5 + 2 · 5) size], got 12 columns");
  EXPECT_FAIL(self_attention(x, whole, {.heads = 4, .key_heads = 3}),
              "[self_attention] expected key_heads to divide heads, got 3 and 4");
  EXPECT_FAIL(self_attention(x, whole, {.heads = 0}), "expected key_heads to divide heads");
  EXPECT_FAIL(self_attention(x, whole, {.heads = 1, .key_heads = -1}), "got -1 and 1");
  EXPECT_FAIL(self_attention(x, whole, {.heads = std::numeric_limits<std::int64_t>::max()}),
              "got 12 columns");
  EXPECT_FAIL(self_attention(x, whole, {.dropout = 1}), "expected dropout in [0, 1), got 1");
  EXPECT_FAIL(self_attention(x, whole, {.dropout = real(0.999999)}),
              "[self_attention] expected dropout <= 1 - 1/65536, got 0.999999");
  EXPECT_FAIL(self_attention(x, whole, {.pattern = nullptr}), "expected a pattern, got none");
  EXPECT_FAIL(self_attention(x, whole, {.terms = {nullptr}}),
              "expected score terms, got a null pointer");
  EXPECT_FAIL(self_attention(x, Ids{0, 3, 2, 5}, {}),
              "expected non-decreasing offsets from 0 to the number of rows (5), got 0, 3, 2, 5");
  EXPECT_FAIL(self_attention(x, Ids{}, {}),
              "[self_attention] expected non-decreasing offsets from 0 to the number of rows (5)");
  EXPECT_FAIL(cross_attention(x, x, whole, whole, {.heads = 3, .key_heads = 1}),
              "[cross_attention] expected kv [tokens, 2 · 1 · 4] for q [5, 12], got [5, 12]");
  EXPECT_FAIL(cross_attention(kv, x, whole, whole, {.heads = 3}),
              "[cross_attention] expected q [tokens, 3 size], got 8 columns");
  EXPECT_FAIL(cross_attention(Tensor(random_array({5}, 1)), x, whole, whole, {}),
              "expected q [query tokens, heads size] and kv");
  EXPECT_FAIL(cross_attention(x, Tensor(random_array({5, 24}, 1)), whole, Ids{0, 2, 5}, {}),
              "[cross_attention] expected as many key sequences as query sequences, got 2 and 1");
  // Rows without columns fit any number of heads.
  const Tensor none = Tensor(Array({5, 0}));
  const AttentionOptions many{.heads = std::numeric_limits<std::int64_t>::max()};
  BOOST_TEST(cross_attention(none, none, whole, whole, many).shape() == none.shape());
  EXPECT_FAIL(cross_attention(none, kv, whole, whole, many),
              "2 · 9223372036854775807 · 0] for q [5, 0], got [5, 8]");
  EXPECT_FAIL(AttentionStep({.heads = 5}, 12),
              "[attention_step] expected q [tokens, 5 size], got 12 columns");
  EXPECT_FAIL(self_attention(x, whole, {.top_k = -1}), "expected top_k of at least 0, got -1");
  EXPECT_FAIL(self_attention(x, whole, {.scale = std::numeric_limits<real>::infinity()}),
              "expected a finite scale, got inf");
  EXPECT_FAIL(
      self_attention(
          x, whole,
          {.pattern = mask_pattern([](auto, auto, auto j) { return j % 2 == 0; }), .top_k = 1}),
      "with top_k, expected a pattern of one stretch of keys, got 3 stretches");
  EXPECT_FAIL(
      self_attention(x, whole,
                     {.pattern = mask_pattern([](auto, auto, auto j) { return j % 2 == 0; }),
                      .map = ScoreMap::sum}),
      "with map sum, expected a pattern of one stretch of keys, got 3 stretches");
  EXPECT_FAIL(self_attention(x, whole, {.top_k = 1, .map = ScoreMap::hard}),
              "expected map softmax with top_k, got hard");
  EXPECT_FAIL(self_attention(x, whole, {.pattern = prefix_pattern({})}),
              "[prefix_pattern] expected a prefix length for sequence 0, got 0 lengths");
  EXPECT_FAIL(bigbird_pattern({.block = 0}),
              "[bigbird_pattern] expected blocks of at least 1 position");
  EXPECT_FAIL(RelativeKeys(kv, 0, Tensor(random_array({3}, 1))),
              "[relative_keys] expected a shift of shape [8], got [3]");
  EXPECT_FAIL(
      RelativeKeys(Tensor(random_array({3}, 1)), 0),
      "[relative_keys] expected keys [distances, heads size] of at least one distance, got [3]");
  EXPECT_FAIL(
      DistanceBias(kv, false),
      "[distance_bias] expected a table [buckets, heads] whose number of buckets is a positive "
      "multiple of 4, got [5, 8]");
  EXPECT_FAIL(
      DistanceBias(Tensor(random_array({8, 1}, 1)), false, 4),
      "[distance_bias] expected a farthest distance above half the number of buckets, got 4 for "
      "8 buckets");
  EXPECT_FAIL(window_pattern(-1, 0),
              "[window_pattern] expected back and ahead of at least 0, got -1");
}

BOOST_AUTO_TEST_SUITE_END()
