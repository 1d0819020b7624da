// Sentences without source tokens: cross-attention reads no key, and all values are finite.
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(empty_source)

namespace {

struct Outcome {
  Array logits, loss;
  std::vector<Array> gradients;
};

Outcome outcome_of(const Generative& model, const Pairs& pairs) {
  Pass pass, again;
  Outcome outcome;
  outcome.logits = model.logits(pairs.input(), pass).value();
  const Tensor loss = model.loss(pairs.input(), {0.1}, again);
  outcome.loss = loss.value();
  const Gradients all = backward(loss);
  for (const NamedTensor& p : model.parameters()) outcome.gradients.push_back(all[p.tensor]);
  return outcome;
}

bool finite(const Array& x) {
  return std::all_of(x.values().begin(), x.values().end(), [](real v) { return std::isfinite(v); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(empty_source_does_not_affect_other_sentences) {
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    for (const PositionKind positions : every<PositionKind>()) {
      ModelOptions o = small_options();
      o.norm = norm;
      o.heads = 3;  // heads of width 2: rotary requires an even width
      o.positions = positions;
      const std::unique_ptr<Generative> model = make_seq2seq(o, 11, 11, true, 1);
      randomise(model->parameters());
      // The same tokens with and without two sentences that have targets but no source.
      const Pairs all({3, 0, 5, 0, 1}, {4, 2, 3, 6, 5}, 11);
      Pairs some = all;
      const auto drop = [](std::vector<std::int32_t>& v, std::int64_t begin, std::int64_t end) {
        v.erase(v.begin() + begin, v.begin() + end);
      };
      for (std::vector<std::int32_t>* side : {&some.target_in, &some.target_out}) {
        drop(*side, 9, 15);
        drop(*side, 4, 6);
      }
      some.source_offsets = {0, 3, 8, 9};
      some.target_offsets = {0, 4, 7, 12};
      const Outcome with_empty = outcome_of(*model, all), without_empty = outcome_of(*model, some);
      BOOST_TEST(difference(with_empty.logits.sliced(0, 4), without_empty.logits.sliced(0, 4)) <
                 1e-13);
      BOOST_TEST(difference(with_empty.logits.sliced(6, 9), without_empty.logits.sliced(4, 7)) <
                 1e-13);
      BOOST_TEST(difference(with_empty.logits.sliced(15, 20), without_empty.logits.sliced(7, 12)) <
                 1e-13);
      BOOST_TEST(finite(with_empty.logits));
      BOOST_TEST(finite(with_empty.loss));
      for (const Array& g : with_empty.gradients) BOOST_TEST(finite(g));
    }
  }
}

BOOST_AUTO_TEST_CASE(batch_of_empty_sources_has_finite_gradients) {
  const std::unique_ptr<Generative> model = make_seq2seq(small_options(), 11, 11, true, 1);
  randomise(model->parameters());
  const Outcome outcome = outcome_of(*model, Pairs({0, 0}, {4, 2}, 11));
  BOOST_TEST(finite(outcome.logits));
  for (const Array& g : outcome.gradients) BOOST_TEST(finite(g));
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
