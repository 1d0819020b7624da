// Recomputing blocks in backward gives the same results, bit for bit, as storing their values.
#include "autograd/ops/more/attention/prefix.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(recomputed_blocks)

namespace {

std::vector<Array> outcome(const Generative& model, const ModelInput& input, bool recompute) {
  Pass pass{true, 3, 4, 1};
  pass.recompute = recompute;
  const Tensor loss = model.loss(input, {0.1, 7}, pass);
  Gradients g = backward(loss);
  std::vector<Array> all{loss.value()};
  for (const NamedTensor& p : model.parameters()) all.push_back(g[p.tensor]);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(recomputing_blocks_gives_bitwise_equal_gradients) {
  const Pairs pairs({5, 0, 3}, {4, 2, 6}, 9);
  for (const PositionKind positions : every<PositionKind>()) {
    for (const BlockForm form : every<BlockForm>()) {
      ModelOptions o = small_options();
      o.d_model = 8;
      o.positions = positions;
      o.block = form;
      o.dropout = 0.2;
      o.encoder_layers = o.decoder_layers = 3;
      const auto model = make_seq2seq(o, 9, 9, true, 1);
      randomise(model->parameters());
      const std::vector<Array> stored = outcome(*model, pairs.input(), false),
                               again = outcome(*model, pairs.input(), true);
      BOOST_TEST_CONTEXT(name_of(positions) << ", " << name_of(form)) {
        for (std::size_t i = 0; i < stored.size(); ++i)
          BOOST_TEST(same_bits(stored[i], again[i]), "result " << i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(recomputed_blocks_use_the_pattern_of_their_context) {
  const ModelOptions o = small_options();
  Init init = test_init();
  const Stack stack(o, 2, BlockKind::causal, init);
  randomise(stack.parameters());
  const std::vector<std::int32_t> offsets = offsets_of({3, 5});
  const Tensor x = Tensor::variable(normal({8, o.d_model}, 1));
  const auto run = [&](bool recompute, const PatternPtr& pattern) {
    Pass pass{.recompute = recompute};
    Context context{offsets, nullptr, pass};
    context.pattern = pattern;
    const Tensor y = stack(x, context);
    return std::pair(y.value(), backward(y, normal(y.shape(), 2))[x]);
  };
  const PatternPtr prefix = prefix_pattern({2, 4});
  const auto stored = run(false, prefix), again = run(true, prefix), causal = run(true, nullptr);
  BOOST_TEST(same_bits(stored.first, again.first));
  BOOST_TEST(same_bits(stored.second, again.second));
  BOOST_TEST(difference(causal.first, again.first) > 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
