// Invariances of a Transformer: the output of a row does not depend on later target tokens, on
// other sequences of the batch or, in an encoder without positions, on the order of the rows.
#include "nn/layers/block.h"
#include "nn/layers/positions.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(properties)

namespace {

ModelOptions two_layers() {
  ModelOptions o = small_options();
  o.d_model = 12;
  o.heads = 3;
  o.d_ff = 20;
  o.encoder_layers = o.decoder_layers = 2;
  return o;
}

Array logits_of(const Generative& model, const Pairs& pairs) {
  Pass pass;
  return model.logits(pairs.input(), pass).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(later_token_does_not_change_earlier_rows) {
  for (const bool lm : {false, true}) {
    for (const std::int32_t length : {2, 5, 9}) {
      ModelOptions o = two_layers();
      const std::unique_ptr<Generative> model =
          lm ? make_language_model(o, 11, 1) : make_seq2seq(o, 11, 11, true, 1);
      randomise(model->parameters());
      const Pairs pairs({4, 3}, {length, length}, 11);
      const Array before = logits_of(*model, pairs);
      for (std::int32_t changed = 0; changed < length; ++changed) {
        Pairs modified = pairs;
        std::int32_t& token = modified.target_in[static_cast<std::size_t>(changed)];
        token = (token + 1) % 11;
        const Array after = logits_of(*model, modified);
        BOOST_TEST(same_bits(before.sliced(0, changed), after.sliced(0, changed)));
        BOOST_TEST(
            !same_bits(before.sliced(changed, changed + 1), after.sliced(changed, changed + 1)));
        BOOST_TEST(same_bits(before.sliced(length, 2 * length), after.sliced(length, 2 * length)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_source_token_affects_every_target_row) {
  for (const PatternKind pattern : every<PatternKind>()) {
    ModelOptions o = two_layers();
    // With a sparse pattern, each token reads its own key only; cross-attention reads all keys.
    o.attention = {.pattern = pattern,
                   .window = 1,
                   .block = 1,
                   .global_blocks = 0,
                   .side_blocks = 0,
                   .random_blocks = 0,
                   .top_k = 1};
    const std::unique_ptr<Generative> model = make_seq2seq(o, 11, 11, true, 1);
    randomise(model->parameters());
    const Pairs pairs({5}, {4}, 11);
    const Array before = logits_of(*model, pairs);
    for (std::size_t i = 0; i < pairs.source.size(); ++i) {
      Pairs modified = pairs;
      modified.source[i] = (modified.source[i] + 1) % 11;
      const Array after = logits_of(*model, modified);
      for (std::int64_t r = 0; r < 4; ++r)
        BOOST_TEST(!same_bits(before.sliced(r, r + 1), after.sliced(r, r + 1)),
                   name_of(pattern) << ", source token " << i << ", target row " << r);
    }
  }
}

BOOST_AUTO_TEST_CASE(sequences_do_not_affect_each_other) {
  for (const bool lm : {false, true}) {
    for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
      ModelOptions o = two_layers();
      o.norm = place;
      const std::unique_ptr<Generative> model =
          lm ? make_language_model(o, 11, 1) : make_seq2seq(o, 11, 11, true, 1);
      randomise(model->parameters());
      const Pairs pairs({4, 1, 7, 3}, {2, 6, 1, 5}, 11);
      const Array together = logits_of(*model, pairs);
      for (std::int64_t i = 0; i < pairs.sequences(); ++i) {
        BOOST_TEST(difference(logits_of(*model, pairs.only(i)),
                              rows_of_sequence(together, pairs.target_offsets, i)) < 1e-12);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(losses_of_sequences_add_up_to_loss_of_batch) {
  const std::unique_ptr<Generative> model = make_seq2seq(two_layers(), 11, 11, true, 1);
  const Pairs pairs({4, 1, 7, 3}, {2, 6, 1, 5}, 11);
  Pass pass;
  LossCounts whole, parts;
  const double loss = model->loss(pairs.input(), {0.1, 14.0, &whole}, pass).item();
  double sum = 0;
  for (std::int64_t i = 0; i < pairs.sequences(); ++i) {
    const Pairs one = pairs.only(i);
    LossCounts part;
    sum += model->loss(one.input(), {0.1, 14.0, &part}, pass).item();
    parts.loss += part.loss;
    parts.nll += part.nll;
    parts.tokens += part.tokens;
    parts.correct += part.correct;
  }
  BOOST_TEST(std::abs(loss - sum) < 1e-12);
  BOOST_TEST(std::abs(whole.loss - 14.0 * loss) < 1e-12);
  BOOST_TEST(std::abs(whole.nll - parts.nll) < 1e-12);
  BOOST_TEST(whole.tokens == 14);
  BOOST_TEST(whole.tokens == parts.tokens);
  BOOST_TEST(whole.correct == parts.correct);
}

// Serial: each part has a residual connection. Parallel: the sum of all parts has one.
BOOST_AUTO_TEST_CASE(blocks_equal_the_formulas_of_their_residual_connections) {
  const std::vector<std::int32_t> offsets = offsets_of({3, 2}), ends = offsets_of({1, 4});
  const Tensor x(normal({5, 6}, 1));
  const EncoderOutput encoded{Tensor(normal({5, 6}, 2)), ends};
  Pass pass;
  const Context context{offsets, &encoded, pass};
  for (const NormPlace place : every<NormPlace>()) {
    for (const BlockForm form : every<BlockForm>()) {
      for (const bool residual : {true, false}) {
        for (const BlockKind kind : {BlockKind::encoder, BlockKind::decoder}) {
          ModelOptions o = small_options();
          o.norm = place;
          o.block = form;
          o.residual = residual;
          Init init = test_init();
          const TransformerBlock block(o, kind, init);
          randomise(block.parameters());
          const auto around = [&](const Residual& one, const Tensor& rows, const auto& part) {
            const Tensor change = part(place == NormPlace::pre ? (*one.norm)(rows, pass) : rows),
                         total = residual ? rows + change : change;
            return place == NormPlace::post ? (*one.norm)(total, pass) : total;
          };
          const auto mix = [&](const Tensor& rows) { return (*block.mixer)(rows, context); };
          const auto cross = [&](const Tensor& rows) {
            return (*block.cross_attention)(rows, context);
          };
          const auto feed = [&](const Tensor& rows) { return block.feed_forward(rows, pass); };
          const bool decoder = kind == BlockKind::decoder;
          Tensor y = x;
          if (form == BlockForm::parallel) {
            y = around(block.around_mixer, y, [&](const Tensor& rows) {
              const Tensor sum = mix(rows) + feed(rows);
              return decoder ? sum + cross(rows) : sum;
            });
          } else {
            y = around(block.around_mixer, y, mix);
            if (decoder) y = around(*block.around_cross, y, cross);
            y = around(*block.around_feed_forward, y, feed);
          }
          BOOST_TEST(difference(block(x, context).value(), y.value()) < 1e-13,
                     name_of(place) << ", " << name_of(form) << (residual ? "" : ", no residual")
                                    << (decoder ? ", decoder" : ""));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(encoder_without_positions_is_permutation_equivariant) {
  const ModelOptions o = two_layers();
  Init init = test_init();
  const Stack encoder(o, 2, BlockKind::encoder, init);
  randomise(encoder.parameters());
  const Array x = normal({7, 12}, 1);
  const std::vector<std::int64_t> order{3, 6, 0, 5, 1, 4, 2};
  Array moved(x.shape());
  for (std::int64_t i = 0; i < 7; ++i)
    std::copy_n(x.row(order[static_cast<std::size_t>(i)]), 12, moved.row(i));
  const std::vector<std::int32_t> offsets{0, 7};
  Pass pass;
  const Array y = encoder(Tensor(x), {offsets, nullptr, pass}).value();
  const Array z = encoder(Tensor(moved), {offsets, nullptr, pass}).value();
  for (std::int64_t i = 0; i < 7; ++i) {
    const std::int64_t from = order[static_cast<std::size_t>(i)];
    BOOST_TEST(difference(z.sliced(i, i + 1), y.sliced(from, from + 1)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(encoder_with_positions_depends_on_order) {
  for (const PositionKind kind : {PositionKind::sinusoidal, PositionKind::learned}) {
    ModelOptions o = two_layers();
    o.positions = kind;
    const std::unique_ptr<Generative> model = make_seq2seq(o, 11, 11, true, 1);
    Pairs pairs({4}, {3}, 11);
    pairs.source = {3, 4, 5, 6};
    const Array before = logits_of(*model, pairs);
    std::swap(pairs.source[1], pairs.source[2]);
    BOOST_TEST(difference(logits_of(*model, pairs), before) > 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(positions_restart_in_each_sequence) {
  for (const PositionKind kind : {PositionKind::sinusoidal, PositionKind::learned}) {
    Init init = test_init();
    ModelOptions o = small_options();
    o.positions = kind;
    o.d_model = 5;
    o.max_positions = 300;
    const Positions positions(o, true, init);
    const Tensor zeros(Array::zeros({300, 5}));
    const Array table = positions(zeros, std::vector<std::int32_t>{0, 300}).value();
    const std::vector<std::int32_t> offsets{0, 3, 3, 4};
    const Array y = positions(Tensor(Array::zeros({4, 5})), offsets).value();
    BOOST_TEST(same_bits(y.sliced(0, 3), table.sliced(0, 3)));
    BOOST_TEST(same_bits(y.sliced(3, 4), table.sliced(0, 1)));
    const Array late =
        positions(Tensor(Array::zeros({2, 5})), std::vector<std::int32_t>{0, 1, 2}, 250).value();
    BOOST_TEST(same_bits(late.sliced(0, 1), table.sliced(250, 251)));
    BOOST_TEST(same_bits(late.sliced(1, 2), table.sliced(250, 251)));
  }
}

BOOST_AUTO_TEST_CASE(position_beyond_learned_table_is_refused) {
  ModelOptions o = two_layers();
  o.positions = PositionKind::learned;
  o.max_positions = 4;
  const std::unique_ptr<Generative> model = make_seq2seq(o, 11, 11, true, 1);
  BOOST_TEST(model->position_limit() == 4);
  BOOST_CHECK_NO_THROW(logits_of(*model, Pairs({4}, {4}, 11)));
  BOOST_CHECK_THROW(logits_of(*model, Pairs({5}, {4}, 11)), Error);
  BOOST_CHECK_THROW(logits_of(*model, Pairs({4}, {5}, 11)), Error);
}

BOOST_AUTO_TEST_CASE(learned_positions_of_language_model_cover_its_context) {
  ModelOptions o = two_layers();
  o.positions = PositionKind::learned;
  o.max_positions = 4;
  o.context = 6;
  const std::unique_ptr<Generative> model = make_language_model(o, 11, 1);
  BOOST_TEST(model->position_limit() == 6);
  const auto logits = [&](std::int32_t length) {
    Pairs text({}, {length}, 11);
    text.source_offsets.clear();
    return logits_of(*model, text);
  };
  BOOST_TEST(logits(6).shape()[0] == 6);
  BOOST_CHECK_THROW(logits(7), Error);
  for (const NamedTensor& p : model->parameters())
    if (p.name.starts_with("positions.")) BOOST_TEST(p.tensor.shape()[0] == 6);
}

BOOST_AUTO_TEST_CASE(empty_sequences_do_not_affect_other_sequences) {
  const std::unique_ptr<Generative> model = make_seq2seq(two_layers(), 11, 11, true, 1);
  randomise(model->parameters());
  const Pairs pairs({0, 3, 0}, {2, 2, 0}, 11);
  const Array logits = logits_of(*model, pairs);
  BOOST_TEST(logits.shape()[0] == 4);
  for (const real v : logits.values()) BOOST_TEST(std::isfinite(v));
  BOOST_TEST(difference(logits.sliced(2, 4), logits_of(*model, pairs.only(1))) < 1e-12);
}

BOOST_AUTO_TEST_CASE(heads_that_do_not_divide_d_model_are_refused) {
  ModelOptions o = small_options();
  Init init = test_init();
  for (const std::int64_t heads : {4, 0}) {
    o.heads = heads;
    BOOST_CHECK_THROW(MultiHeadAttention(o, AttentionScope::all, init), Error);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
