// A model that labels each row of its source.
#include "nn/models/tagger.h"

#include "autograd/gradcheck.h"
#include "tests/nn/support.h"

HEED_BEGIN

namespace {

constexpr std::int64_t vocabulary = 7, labels = 5;

/// The labels of three lines, with as many as they have tokens.
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

BOOST_AUTO_TEST_CASE(a_line_has_the_same_labels_in_any_company) {
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

BOOST_AUTO_TEST_CASE(it_is_what_an_encoder_alone_stands_for) {
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

BOOST_AUTO_TEST_SUITE_END()

HEED_END
