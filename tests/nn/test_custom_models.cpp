// Parts for custom models: lists of parameters, a backbone, losses.
#include "autograd/gradcheck.h"
#include "nn/losses.h"
#include "nn/models/backbone.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(custom_models)

BOOST_AUTO_TEST_CASE(parameters_of_returns_prefixed_names_in_order) {
  Init init(1);
  const Linear first(2, 3, init), second(3, 1, init, false);
  std::string names;
  for (const NamedTensor& p : parameters_of("first", first, "", second, "again", second))
    names += p.name + " ";
  BOOST_TEST(names == "first.weight first.bias weight again.weight ");
}

BOOST_AUTO_TEST_CASE(offsets_are_cumulative_sums_of_lengths) {
  BOOST_TEST(offsets_of({3, 0, 1}) == (std::vector<std::int32_t>{0, 3, 3, 4}),
             boost::test_tools::per_element());
  BOOST_TEST(offsets_of({}).size() == 1u);
}

BOOST_AUTO_TEST_CASE(backbone_kind_selects_encoder_or_decoder_depth) {
  ModelOptions o = small_options();
  o.encoder_layers = 2;
  o.decoder_layers = 3;
  Init init(1);
  BOOST_TEST(Backbone(o, 5, BlockKind::encoder, init).stack.blocks.size() == 2u);
  BOOST_TEST(Backbone(o, 5, BlockKind::causal, init).stack.blocks.size() == 3u);
}

BOOST_AUTO_TEST_CASE(backbone_passes_gradcheck) {
  ModelOptions o = small_options();
  o.positions = PositionKind::learned;
  o.activation = Activation::gelu;
  Init init(1);
  const Backbone backbone(o, 7, BlockKind::causal, init);
  const std::vector<std::int32_t> ids = random_ids(5, 7, 1), offsets = offsets_of({3, 2});
  const auto f = layered(backbone.parameters(), [&] { return backbone(ids, offsets); });
  BOOST_TEST(gradcheck(f));
}

BOOST_AUTO_TEST_CASE(backbone_applies_dropout_only_in_training) {
  ModelOptions o = small_options();
  o.dropout = 0.5;
  Init init(1);
  const Backbone backbone(o, 7, BlockKind::encoder, init);
  const std::vector<std::int32_t> ids = random_ids(5, 7, 1), offsets = offsets_of({3, 2});
  Pass evaluation, training{.training = true, .seed = 3, .step = 1};
  const Array plain = backbone(ids, offsets).value();
  BOOST_TEST(same_bits(backbone(ids, offsets, evaluation).value(), plain));
  BOOST_TEST(same_bits(backbone(ids, {offsets, nullptr, evaluation}).value(), plain));
  BOOST_TEST(!same_bits(backbone(ids, offsets, training).value(), plain));
}

BOOST_AUTO_TEST_CASE(wrong_offsets_are_refused_by_first_layer) {
  ModelOptions o = small_options();
  o.max_positions = 4;
  Init init(1);
  const std::vector<std::int32_t> ids = random_ids(5, 7, 1);
  for (const PositionKind kind :
       {PositionKind::sinusoidal, PositionKind::learned, PositionKind::none}) {
    o.positions = kind;
    const Backbone backbone(o, 7, BlockKind::encoder, init);
    const std::string op = kind == PositionKind::none ? "[self_attention]" : "[positions]";
    using List = std::vector<std::int32_t>;
    for (const List& wrong : {List{0, 4}, List{0, 6}, List{1, 5}, List{0, 6, 5}, List{}})
      EXPECT_FAIL(backbone(ids, wrong),
                  op + " expected non-decreasing offsets from 0 to the number of rows (5), got");
  }
  o.positions = PositionKind::learned;
  EXPECT_FAIL(Backbone(o, 7, BlockKind::encoder, init)(ids, offsets_of({5})),
              "[positions] a sequence of 5 rows exceeds the table of 4 positions");
}

BOOST_AUTO_TEST_CASE(mean_squared_error_equals_definition) {
  const Tensor x = Tensor::variable(array_of({2, 2}, {1, 2, 3, 5})),
               y = array_of({2, 2}, {0, 2, 5, 1});
  BOOST_TEST(std::abs(mean_squared_error(x, y).item() - (1 + 0 + 4 + 16) / 4.0) < 1e-15);
  BOOST_TEST(gradcheck(mean_squared_error, x, y));
}

BOOST_AUTO_TEST_CASE(mean_squared_error_of_unequal_shapes_is_refused) {
  EXPECT_FAIL(mean_squared_error(normal({3, 1}, 1), normal({3}, 2)),
              "[mean_squared_error] expected a target of x's shape [3, 1], got [3]");
  EXPECT_FAIL(mean_squared_error(Tensor(), normal({}, 2)), "an undefined one");
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
