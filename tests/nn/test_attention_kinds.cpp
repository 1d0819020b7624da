// Every position scheme with every pattern of self-attention, and every other built-in mixer, in
// whole models: gradients, cached decoding, learning. New kinds are included automatically, because
// the tests iterate over the lists of names.
#include <algorithm>

#include "autograd/gradcheck.h"
#include "optim/optimizer.h"
#include "tests/autograd/expect.h"
#include "tests/learning.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(attention_in_models)

namespace {

constexpr std::uint32_t vocabulary = 9;

/// Runs body(options, lm) for every combination that the config allows. `lm` is true for a language
/// model, false for seq2seq. The message of a failed check names the combination.
template <class Body>
void for_each_kind(Body body) {
  for (const bool lm : {false, true}) {
    for (const PositionKind positions : every<PositionKind>()) {
      for (const PatternKind pattern : every<PatternKind>()) {
        if (!info_of(pattern).scores && info_of(positions).adds_to_scores())
          continue;  // refused by the config
        ModelOptions o = small_options();
        o.d_model = 8;  // the width of each head must be even
        o.positions = positions;
        o.shaw_distance = 2;
        o.t5_buckets = 4;
        o.t5_distance = 4;
        o.attention = {.pattern = pattern,
                       .window = 3,
                       .kv_heads = lm ? 1 : 0,
                       .block = 2,
                       .global_blocks = 1,
                       .side_blocks = 0,
                       .random_blocks = 1,
                       .top_k = 3};
        BOOST_TEST_CONTEXT((lm ? "lm, " : "seq2seq, ")
                           << name_of(positions) << ", " << name_of(pattern))
        body(o, lm);
      }
    }
    ModelOptions hard = small_options();
    hard.attention.map = ScoreMap::hard;
    BOOST_TEST_CONTEXT((lm ? "lm, hard" : "seq2seq, hard")) body(hard, lm);
    for (std::size_t mixer = 1; mixer < open_names(MixerKind{}).built_in(); ++mixer) {
      ModelOptions o = small_options();
      o.mixer = static_cast<MixerKind>(mixer);
      o.conv_width = 3;
      o.positions = PositionKind::none;
      BOOST_TEST_CONTEXT((lm ? "lm, " : "seq2seq, ") << name_of(o.mixer))
      body(o, lm);
    }
  }
}

std::unique_ptr<Generative> model_of(const ModelOptions& o, bool lm, std::uint64_t seed = 1) {
  return lm ? make_language_model(o, vocabulary, seed)
            : make_seq2seq(o, vocabulary, vocabulary, true, seed);
}

Pairs some_pairs(bool lm, const std::vector<std::int32_t>& lengths) {
  Pairs pairs(lm ? std::vector<std::int32_t>{} : lengths, lengths, vocabulary);
  if (lm) pairs.source_offsets.clear();
  return pairs;
}

bool zero(const Array& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](real v) { return v == 0; });
}

/// Checks that, in a block of this kind, row i of n depends on row j exactly if reads(i, j).
template <class Reads>
void check_reads(const ModelOptions& o, BlockKind kind, std::int64_t n, Reads reads) {
  const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(n)};
  Init init = test_init();
  const Stack stack(o, 1, kind, init);
  randomise(stack.parameters());
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor x = Tensor::variable(normal({n, o.d_model}, 1));
    Pass pass;
    Array dy = Array::zeros({n, o.d_model});
    dy.row(i)[0] = 1;
    const Array dx = backward(stack(x, {offsets, nullptr, pass}), dy)[x];
    for (std::int64_t j = 0; j < n; ++j)
      BOOST_TEST(zero(dx.sliced(j, j + 1)) != reads(i, j), "row " << i << ", token " << j);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(models_with_every_attention_kind_pass_gradcheck) {
  for_each_kind([](const ModelOptions& o, bool lm) {
    const std::unique_ptr<Generative> model = model_of(o, lm);
    const Pairs pairs = some_pairs(lm, {5, 1, 6});
    randomise(model->parameters());
    BOOST_TEST(gradcheck_parameters(
        [&] {
          Pass pass;
          return model->loss(pairs.input(), {0.1, 7.0}, pass);
        },
        model->parameters(), {.directions = 3}));
  });
}

BOOST_AUTO_TEST_CASE(cached_decoding_with_every_attention_kind_equals_uncached) {
  for_each_kind([](ModelOptions o, bool lm) {
    o.encoder_layers = o.decoder_layers = 2;
    const std::unique_ptr<Generative> model = model_of(o, lm);
    const Pairs pairs = some_pairs(lm, {5, 1, 7});
    randomise(model->parameters());
    const SideView source = lm ? SideView{} : pairs.source_side();
    const auto cached = model->decode(source, 3), plain = model->decode(source, 3, false);
    Random random({.seed = 4, .stream = Stream::check});
    for (int step = 0; step < 9; ++step) {
      std::vector<std::int32_t> tokens;
      for (int i = 0; i < 3; ++i)
        tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
      BOOST_TEST(difference(cached->step(tokens), plain->step(tokens)) < 1e-10, "step " << step);
      const std::vector<std::int32_t> parents{2, 0, 0};
      cached->select(parents);
      plain->select(parents);
    }
  });
}

BOOST_AUTO_TEST_CASE(prefill_of_prompt_equals_single_steps) {
  for_each_kind([](ModelOptions o, bool lm) {
    if (!lm) return;
    o.decoder_layers = 2;
    o.context = 20;
    const std::unique_ptr<Generative> model = model_of(o, lm);
    randomise(model->parameters());
    const std::vector<std::int32_t> text{3, 4, 8, 5, 5, 7, 3};
    for (const bool cached : {true, false}) {
      const auto at_once = model->decode({}, 3, cached), stepwise = model->decode({}, 3);
      at_once->prefill(text);
      for (const std::int32_t id : text) stepwise->step(std::vector<std::int32_t>(3, id));
      for (int step = 0; step < 4; ++step) {
        const std::vector<std::int32_t> tokens{3 + step, 4, 5};
        BOOST_TEST(difference(at_once->step(tokens), stepwise->step(tokens)) < 1e-10,
                   "step " << step);
        const std::vector<std::int32_t> parents{2, 0, 0};
        at_once->select(parents);
        stepwise->select(parents);
      }
      EXPECT_FAIL(at_once->prefill(text), "[decoding] prefill must precede the first step");
    }
    model->decode({}, 1)->prefill({});  // an empty prompt is allowed
  });
  const std::unique_ptr<Generative> translator = model_of(small_options(), false);
  const Pairs pairs = some_pairs(false, {5});
  EXPECT_FAIL(translator->decode(pairs.source_side(), 1)->prefill(std::vector<std::int32_t>{3}),
              "requires a model without a source");
}

BOOST_AUTO_TEST_CASE(training_with_every_attention_kind_halves_loss,
                     *boost::unit_test::label("learns")) {
  double worst = 0;  // maximum over all kinds
  for_each_kind([&](ModelOptions o, bool lm) {
    o.d_model = 12;
    const std::unique_ptr<Generative> model = model_of(o, lm, test::training_seed());
    const Pairs pairs = some_pairs(lm, {6, 3, 5, 4});
    const auto labels = static_cast<double>(pairs.target_out.size());
    Optimizer optimizer(OptimOptions{}, model->parameters());
    double first = 0, last = 0;
    for (int step = 1; step <= 60; ++step) {
      Pass pass;
      const Tensor loss = model->loss(pairs.input(), {0, labels}, pass);
      last = loss.item();
      if (step == 1) first = last;
      Gradients all = backward(loss);
      std::vector<Array> gradients;
      for (const NamedTensor& p : model->parameters()) gradients.push_back(all.take(p.tensor));
      optimizer.step(gradients, test::training_rate(0.02));
    }
    BOOST_TEST(last < 0.5 * first, "the loss changed from " << first << " to " << last);
    worst = std::max(worst, last / first);
  });
  HEED_CHECK_LEARNED("maximum ratio of the last loss to the first", worst, <, 0.5);
}

BOOST_AUTO_TEST_CASE(row_depends_exactly_on_tokens_within_window) {
  ModelOptions o = small_options();
  o.attention = {PatternKind::window, 3};
  for (const BlockKind kind : {BlockKind::encoder, BlockKind::causal}) {
    check_reads(o, kind, 9, [&](std::int64_t i, std::int64_t j) {
      return j >= i - 2 && j <= i + (kind == BlockKind::encoder ? 2 : 0);
    });
  }
}

BOOST_AUTO_TEST_CASE(row_depends_exactly_on_tokens_of_its_global_and_adjacent_blocks) {
  ModelOptions o = small_options();
  o.attention = {.pattern = PatternKind::bigbird,
                 .block = 3,
                 .global_blocks = 1,
                 .side_blocks = 2,
                 .random_blocks = 0};
  for (const BlockKind kind : {BlockKind::encoder, BlockKind::causal}) {
    check_reads(o, kind, 17, [&](std::int64_t i, std::int64_t j) {
      const bool near = i / 3 < 1 || j / 3 < 1 || std::abs(i / 3 - j / 3) <= 2;
      return near && (kind == BlockKind::encoder || j <= i);
    });
  }
}

BOOST_AUTO_TEST_CASE(alibi_encodes_order_without_position_limit_or_parameters) {
  ModelOptions o = small_options();
  o.positions = PositionKind::alibi;
  BOOST_TEST(model_of(o, true)->position_limit() == 0);
  BOOST_TEST(model_of(o, false)->position_limit() == 0);
  ModelOptions none = o;
  none.positions = PositionKind::none;
  for (const bool lm : {false, true}) {
    const auto with = model_of(o, lm), without = model_of(none, lm);
    BOOST_TEST(with->parameters().size() == without->parameters().size());
    // Without positions, an encoder ignores the order of its rows; the ALiBi penalty depends on it.
    const Pairs pairs = some_pairs(lm, {6});
    Pass pass;
    BOOST_TEST(difference(with->logits(pairs.input(), pass).value(),
                          without->logits(pairs.input(), pass).value()) > 1e-6);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
