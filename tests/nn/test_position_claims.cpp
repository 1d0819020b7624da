// Claims of papers about positions: the sinusoids of Vaswani et al. 2017, section 3.5, and the
// rotations of Su et al. 2021, section 3.2.
#include <cmath>

#include "autograd/ops/more/attention/rotary.h"
#include "nn/layers/attention.h"
#include "nn/layers/positions.h"
#include "nn/models/classifier.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(position_claims)

namespace {

constexpr std::int64_t width = 64;

double inner(const Array& table, std::int64_t p, std::int64_t q) {
  double sum = 0;
  for (std::int64_t c = 0; c < table.cols(); ++c) sum += table.row(p)[c] * table.row(q)[c];
  return sum;
}

/// One head, rotated for each of the positions 0, 1, …: [positions, size].
Array rotated(const Tensor& head, std::int64_t positions, RotaryPairs pairs, double base = 10000) {
  const std::int64_t size = head.shape()[1];
  std::vector<std::int32_t> positions_of_rows;
  for (std::int64_t p = 0; p < positions; ++p)
    positions_of_rows.push_back(static_cast<std::int32_t>(p));
  return rotary(broadcast_to(head, {positions, size}), positions_of_rows,
                {.size = size, .columns = size, .pairs = pairs, .base = base})
      .value();
}

/// Compares self-attention with the formulas of these positions: the score of query i and key j is
/// (q_i + u) · k_j + (q_i + v) · r_(i − j).
/// relative_xl: r is a projection of the sinusoids (Dai et al. 2019, section 3.3, equation d).
/// relative_shaw: r is a trained vector for each distance up to a maximum, and u = v = 0 (Shaw et al.
/// 2018, equation 4).
void check_scores(PositionKind kind) {
  constexpr std::int64_t n = 7, d = 6, heads = 2, size = d / heads, farthest = 2;
  for (const AttentionScope scope : {AttentionScope::all, AttentionScope::past}) {
    const bool past = scope == AttentionScope::past, shaw = kind == PositionKind::relative_shaw;
    ModelOptions o = small_options();
    o.positions = kind;
    o.shaw_distance = farthest;
    Init init = test_init();
    const MultiHeadAttention layer(o, scope, init);
    randomise(layer.parameters());
    const Tensor x(normal({n, d}, 1));
    const std::vector<std::int32_t> offsets{0, n};
    Pass pass;
    const Array found = layer(x, {offsets, nullptr, pass}).value();
    const auto projected = [&](std::int64_t from) {
      return affine_rows(x, layer.in_proj_weight, layer.in_proj_bias, from, from + d).value();
    };
    const LayerPositions& positions = layer.positions;
    const Array q = projected(0), k = projected(d), v = projected(2 * d), none = Array::zeros({d});
    const real* const at_key = shaw ? none.data() : positions.u.value().data();
    const real* const at_distance = shaw ? none.data() : positions.v.value().data();
    const auto distance_key = [&](std::int64_t distance) {
      if (!shaw) return affine(Tensor(sinusoids(distance, 1, d)), positions.weight).value();
      const std::int64_t row = std::clamp(distance, -farthest, farthest) + (past ? 0 : farthest);
      return positions.weight.value().sliced(row, row + 1);
    };
    Array mixed = Array::zeros({n, d});
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t keys = past ? i + 1 : n;
      for (std::int64_t first = 0; first < d; first += size) {
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          const Array r = distance_key(i - j);
          double score = 0;
          for (std::int64_t c = first; c < first + size; ++c)
            score += (q.row(i)[c] + at_key[c]) * k.row(j)[c] +
                     (q.row(i)[c] + at_distance[c]) * r.data()[c];
          weights.push_back(std::exp(score / std::sqrt(double{size})));
          sum += weights.back();
        }
        for (std::int64_t j = 0; j < keys; ++j) {
          for (std::int64_t c = first; c < first + size; ++c)
            mixed.row(i)[c] += weights[static_cast<std::size_t>(j)] / sum * v.row(j)[c];
        }
      }
    }
    BOOST_TEST(difference(found, layer.out_proj(Tensor(mixed)).value()) < 1e-12,
               name_of(kind) << (past ? ", causal" : ""));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(sinusoids_of_shifted_position_are_linear_in_sinusoids_of_position) {
  const Array table = sinusoids(0, 3000, width);
  for (const std::int64_t k : {1, 7, 100, 1000}) {
    for (const std::int64_t p : {0, 1, 50, 1999}) {
      for (std::int64_t c = 0; c < width; c += 2) {
        // The linear map from position p to p + k rotates each pair by k · 10000^(−c/d).
        const double angle =
            static_cast<double>(k) * std::pow(10000.0, -static_cast<double>(c) / width);
        const double sine = table.row(p)[c], cosine = table.row(p)[c + 1];
        BOOST_TEST(std::abs(std::cos(angle) * sine + std::sin(angle) * cosine -
                            table.row(p + k)[c]) < 1e-12);
        BOOST_TEST(std::abs(std::cos(angle) * cosine - std::sin(angle) * sine -
                            table.row(p + k)[c + 1]) < 1e-12);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sinusoids_are_bounded_and_their_rows_have_equal_norm) {
  const Array table = sinusoids(0, 5000, width);
  for (const real x : table.values()) BOOST_REQUIRE(std::abs(x) <= 1);
  for (std::int64_t p = 0; p < table.rows(); ++p)
    BOOST_REQUIRE_SMALL(inner(table, p, p) - width / 2.0, 1e-10);
}

BOOST_AUTO_TEST_CASE(inner_products_of_sinusoids_depend_only_on_distance) {
  const Array table = sinusoids(0, 2000, width);
  for (const std::int64_t distance : {1, 2, 10, 500}) {
    for (const std::int64_t p : {1, 77, 1499})
      BOOST_TEST(std::abs(inner(table, p, p + distance) - inner(table, 0, distance)) < 1e-10);
    BOOST_TEST(std::abs(inner(table, 600, 600 - distance) - inner(table, 600, 600 + distance)) <
               1e-10);  // equal in both directions
  }
  // The product decreases over the first distances. Beyond them it is not monotonic, nor does the
  // paper claim that it is.
  BOOST_TEST(inner(table, 0, 1) < inner(table, 0, 0));
  BOOST_TEST(inner(table, 0, 2) < inner(table, 0, 1));
}

BOOST_AUTO_TEST_CASE(sinusoids_of_positions_are_distinct) {
  // The norm of the difference of two rows depends only on the distance between their positions, so
  // comparing every row with row 0 suffices.
  const Array table = sinusoids(0, 10'000, width);
  double least = 1e9;
  for (std::int64_t p = 1; p < table.rows(); ++p)
    least = std::min(least, std::sqrt(width - 2 * inner(table, 0, p)));
  BOOST_TEST(least > 0.5);
}

// Heads of different sizes and bases are rotated in turn, so that a table of angles that is kept for
// one of them would be wrong for the next. 300 positions exceed the first table.
BOOST_AUTO_TEST_CASE(rotations_equal_their_definition_for_sizes_and_bases_in_turn) {
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t size : {4, 8}) {
      for (const double base : {10000.0, 100.0, 500000.0}) {
        for (const RotaryPairs pairs : every<RotaryPairs>()) {
          const Tensor head = normal({1, size}, 5);
          const real* const x = head.value().data();
          const Array y = rotated(head, 300, pairs, base);
          double largest = 0;
          for (std::int64_t p = 0; p < 300; ++p) {
            for (std::int64_t i = 0; i < size / 2; ++i) {
              const double angle =
                  static_cast<double>(p) *
                  std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
              const bool halves = pairs == RotaryPairs::halves;
              const std::int64_t a = halves ? i : 2 * i, b = halves ? i + size / 2 : 2 * i + 1;
              largest = std::max(
                  {largest,
                   std::abs(y.row(p)[a] - (x[a] * std::cos(angle) - x[b] * std::sin(angle))),
                   std::abs(y.row(p)[b] - (x[b] * std::cos(angle) + x[a] * std::sin(angle)))});
            }
          }
          BOOST_TEST(largest < 1e-12, "size " << size << ", base " << base << ": " << largest);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_of_rotated_heads_depend_only_on_relative_position) {
  const Tensor q = normal({1, 8}, 1), k = normal({1, 8}, 2);
  for (const RotaryPairs pairs : every<RotaryPairs>()) {
    const Array queries = rotated(q, 900, pairs), keys = rotated(k, 900, pairs);
    const auto score = [&](std::int64_t i, std::int64_t j) {
      double sum = 0;
      for (std::int64_t c = 0; c < 8; ++c) sum += queries.row(i)[c] * keys.row(j)[c];
      return sum;
    };
    for (const std::int64_t distance : {0, 1, 3, 400}) {
      for (const std::int64_t p : {1, 20, 499}) {
        BOOST_TEST(std::abs(score(p + distance, p) - score(distance, 0)) < 1e-11);
        BOOST_TEST(std::abs(score(p, p + distance) - score(0, distance)) < 1e-11);
      }
    }
    BOOST_TEST(std::abs(score(3, 0) - score(0, 3)) > 1e-3);  // the direction has an effect
    BOOST_TEST(same_bits(queries.sliced(0, 1), q.value()));  // position 0 is not rotated
  }
}

BOOST_AUTO_TEST_CASE(rotary_pair_orders_differ_by_column_permutation) {
  const Tensor x = normal({1, 8}, 3);
  Array moved({1, 8});  // columns 2 i and 2 i + 1 move to i and i + 4
  for (std::int64_t c = 0; c < 8; ++c) moved.data()[c / 2 + 4 * (c % 2)] = x.value().data()[c];
  const Array adjacent = rotated(x, 50, RotaryPairs::adjacent),
              halves = rotated(Tensor(moved), 50, RotaryPairs::halves);
  for (std::int64_t p = 0; p < 50; ++p) {
    for (std::int64_t c = 0; c < 8; ++c)
      BOOST_TEST(adjacent.row(p)[c] == halves.row(p)[c / 2 + 4 * (c % 2)]);
  }
}

BOOST_AUTO_TEST_CASE(scores_of_relative_xl_equal_their_definition) {
  check_scores(PositionKind::relative_xl);
}

BOOST_AUTO_TEST_CASE(scores_of_relative_shaw_equal_their_definition) {
  check_scores(PositionKind::relative_shaw);
}

// Of 8 buckets, an encoder uses the last four for later keys; row 5 is that of the next key. In a
// causal stack, it is that of keys farther away than in these sequences.
BOOST_AUTO_TEST_CASE(only_encoders_read_the_biases_of_later_keys) {
  ModelOptions o = small_options();
  o.positions = PositionKind::relative_t5;
  o.t5_buckets = 8;
  o.t5_distance = 6;
  const Pairs pairs({3, 3}, {3, 3}, 7);
  const SideView target{pairs.target_in, pairs.target_offsets};
  const auto reads = [](const Model& model, const std::string& name, const ModelInput& input) {
    randomise(model.parameters());
    Pass pass;
    const auto rows = [&] { return model.deferred_logits(input, pass).rows.value(); };
    const Array before = rows();
    for (NamedTensor& p : model.parameters())
      if (p.name == name) p.tensor.mutable_value().row(5)[1] += 1;
    return difference(rows(), before) > 1e-6;
  };
  const auto translator = make_seq2seq(o, 7, 7, true, 1);
  const ModelInput both{pairs.source_side(), target};
  BOOST_TEST(reads(*translator, "source_positions.weight", both));
  BOOST_TEST(!reads(*translator, "target_positions.weight", both));
  BOOST_TEST(reads(*make_classifier(o, Labelling::rows, 7, 5, 1), "positions.weight",
                   {pairs.source_side(), {}}));
  BOOST_TEST(!reads(*make_language_model(o, 7, 1), "positions.weight", {{}, target}));
}

BOOST_AUTO_TEST_CASE(wrong_rotary_arguments_are_refused) {
  const Tensor x = normal({2, 6}, 1);
  const std::vector<std::int32_t> positions_of_rows{0, 1};
  EXPECT_FAIL(rotary(normal({6}, 1), positions_of_rows, {.size = 2, .columns = 2}),
              "[rotary] expected x [rows, d], got [6]");
  EXPECT_FAIL(rotary(x, positions_of_rows, {.size = 3, .columns = 6}),
              "[rotary] expected heads of an even size of at least 2, got 3");
  EXPECT_FAIL(rotary(x, positions_of_rows, {.size = 4, .columns = 6}),
              "[rotary] expected whole heads of size 4 within [2, 6], got 6 columns");
  EXPECT_FAIL(rotary(x, positions_of_rows, {.size = 2, .columns = 8}), "got 8 columns");
  EXPECT_FAIL(rotary(x, std::vector<std::int32_t>{0}, {.size = 2, .columns = 2}),
              "[rotary] expected one position per row (2 in all), got 1");
  EXPECT_FAIL(rotary(x, std::vector<std::int32_t>{0, -1}, {.size = 2, .columns = 2}),
              "[rotary] expected positions of at least 0, got -1");
}

BOOST_AUTO_TEST_CASE(only_relative_position_schemes_have_no_position_limit) {
  for (const PositionKind kind : every<PositionKind>()) {
    ModelOptions o = small_options();
    o.positions = kind;
    BOOST_TEST((make_language_model(o, 7, 1)->position_limit() == 0) == info_of(kind).by_distance);
  }
}

BOOST_AUTO_TEST_CASE(only_trained_position_schemes_have_parameters) {
  ModelOptions o = small_options();
  const auto sizes = [&](PositionKind kind) {
    o.positions = kind;
    std::string all;
    for (const NamedTensor& p : make_language_model(o, 7, 1)->parameters()) {
      if (p.name.find("positions") != std::string::npos)
        all += fmt::format("{} {}; ", p.name, p.tensor.shape());
    }
    return all;
  };
  for (const PositionKind kind :
       {PositionKind::sinusoidal, PositionKind::rotary, PositionKind::alibi, PositionKind::none})
    BOOST_TEST(sizes(kind).empty());
  BOOST_TEST(sizes(PositionKind::learned) == "positions.weight [16, 6]; ");
  BOOST_TEST(sizes(PositionKind::relative_t5) == "positions.weight [32, 2]; ");
  const std::string layer = "decoder.layers.0.self_attn.positions.";
  BOOST_TEST(sizes(PositionKind::relative_shaw) == layer + "weight [17, 6]; ");
  BOOST_TEST(sizes(PositionKind::relative_xl) ==
             layer + "weight [6, 6]; " + layer + "u [6]; " + layer + "v [6]; ");
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
