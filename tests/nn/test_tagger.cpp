// A model that labels each row of its source.
#include "nn/models/tagger.h"

#include "autograd/gradcheck.h"
#include "tests/nn/support.h"

HEED_BEGIN

namespace {

constexpr std::int64_t vocabulary = 7, labels = 5;

/// Labels of three lines, one for each token.
struct Labelled {
  Pairs pairs{{3, 1, 4}, {3, 1, 4}, labels};
  Rows rows() const { return {pairs.source_side(), {}, pairs.target_out}; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(tagger)

BOOST_AUTO_TEST_CASE(every_parameter_has_the_right_gradient) {
  const Labelled lines;
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    for (const double dropout : {0.0, 0.3}) {
      ModelOptions o = small_options();
      o.norm = norm;
      o.positions = dropout > 0 ? PositionKind::learned : PositionKind::sinusoidal;
      o.max_positions = 4;
      o.dropout = dropout;
      const std::unique_ptr<Model> model = make_tagger(o, vocabulary, labels, 1);
      randomise(model->parameters());
      const auto loss = [&] {
        Pass pass{dropout > 0, 5, 17, 2};
        return model->loss(lines.rows(), {0.1, 7.0}, pass);
      };
      BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_loss_is_the_cross_entropy_of_the_logits) {
  const Labelled lines;
  const std::unique_ptr<Tagger> model = make_tagger(small_options(), vocabulary, labels, 1);
  randomise(model->parameters());
  Pass pass;
  LossCounts counts, plain_counts;
  const Tensor loss = model->loss(lines.rows(), {0.1, 3.0, &counts}, pass);
  const Tensor logits = model->logits(lines.rows(), pass);
  BOOST_TEST((logits.shape() == Shape{8, labels}));
  const Tensor plain =
      cross_entropy(logits, lines.pairs.target_out, static_cast<real>(0.1), 3.0, &plain_counts);
  BOOST_TEST(std::abs(loss.item() / plain.item() - 1) < 1e-12);
  BOOST_TEST(counts.tokens == 8);
  BOOST_TEST(counts.correct == plain_counts.correct);
}

BOOST_AUTO_TEST_CASE(the_labels_of_a_line_do_not_depend_on_the_batch) {
  const Labelled lines;
  const std::unique_ptr<Tagger> model = make_tagger(small_options(), vocabulary, labels, 1);
  randomise(model->parameters());
  Pass pass;
  const Array together = model->logits(lines.rows(), pass).value();
  for (std::int64_t i = 0; i < 3; ++i) {
    const Pairs one = lines.pairs.only(i);
    const Array alone = model->logits({one.source_side(), {}, one.target_out}, pass).value();
    const auto& at = lines.pairs.source_offsets;
    BOOST_TEST(difference(alone, together.sliced(at[i], at[i + 1])) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(an_encoder_without_a_decoder_is_a_tagger) {
  const ModelOptions o = small_options();
  const Parameters made =
                       make_model(Architecture::encoder, o, {vocabulary, labels}, 1)->parameters(),
                   same = make_tagger(o, vocabulary, labels, 1)->parameters();
  BOOST_TEST(made.size() == same.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    BOOST_TEST(made[i].name == same[i].name);
    BOOST_TEST(same_bits(made[i].tensor.value(), same[i].tensor.value()));
  }
}

// With the statistics of its own batch, a line's labels would depend on the other lines.
BOOST_AUTO_TEST_CASE(batch_norm_in_evaluation_uses_its_running_means) {
  ModelOptions o = small_options();
  o.norm_kind = NormKind::batch;
  const std::unique_ptr<Tagger> model = make_tagger(o, vocabulary, labels, 1);
  randomise(model->parameters());
  const Labelled lines;
  const auto logits_of = [&](const Pairs& pairs) {
    Pass pass;
    return model->logits({pairs.source_side(), {}, {}}, pass).value();
  };
  const Array together = logits_of(lines.pairs);
  for (std::int64_t i = 0; i < 3; ++i) {
    BOOST_TEST(difference(logits_of(lines.pairs.only(i)),
                          rows_of_sequence(together, lines.pairs.source_offsets, i)) < 1e-12);
  }
  for (NamedTensor& t : model->state()) {
    if (t.name.ends_with("running_mean")) t.tensor.mutable_value().values()[0] += 1;
  }
  BOOST_TEST(difference(logits_of(lines.pairs), together) > 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
