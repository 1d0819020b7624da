// Pruning of heads and weights of a trained model.
#include "nn/options.h"
#include "train/loop/pruning.h"

#include <algorithm>
#include <cmath>

#include "nn/layers/activations.h"
#include "tests/train/trainer_support.h"
#include "train/decode/model_input.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(pruning)

namespace {

struct Subject {
  TempFolder folder;
  Config config = small_run(60);
  std::optional<Run> run;
  std::optional<Trainer> trainer;

  Subject() {
    config.model->encoder_layers = 2;
    // Difference quotients are inaccurate at the kink of ReLU.
    config.model->activation = Activation::gelu;
    run.emplace(config, folder / "run");
    trainer.emplace(run->config, run->paths(), run->data, run->run_log);
    BOOST_TEST(trainer->train() == 0);
  }
  /// The trainer's model, to be changed by the functions under test.
  Model& model() const { return const_cast<Model&>(trainer->model()); }
  Tensor weight(const std::string& name) const {
    const Parameters all = model().parameters();
    return std::ranges::find(all, name, &NamedTensor::name)->tensor;
  }
  double loss(const Batch& batch) const {
    const NoGrad no_grad;
    Pass evaluation;
    return double{
        model()
            .loss(model_input(batch), {0, static_cast<double>(batch.label_count())}, evaluation)
            .item()};
  }
};

}  // namespace

// The gate of a head scales the head's columns of the output projection, so a difference quotient
// of the loss approximates the gradient with respect to the gate.
BOOST_AUTO_TEST_CASE(importance_of_a_head_matches_the_difference_quotient_of_its_gate,
                     *boost::unit_test::label("learns")) {
  Subject s;
  BatchOptions one;
  one.batch_sequences = 1;
  const Batch batch = evaluation_batches(s.run->data.valid, one).front();
  const std::vector<HeadImportance> heads =
      importance_of_heads(s.model(), s.config, s.run->data.valid, 1, s.trainer->team());
  // The encoder and the decoder have two attention layers each.
  BOOST_REQUIRE(heads.size() == 4U * 3U);
  BOOST_TEST(heads[3].attention == "encoder.layers.1.self_attn");
  BOOST_TEST(heads[11].attention == "decoder.layers.0.multihead_attn");
  std::vector<double> quotients;
  for (const HeadImportance& head : heads) {
    Tensor tensor = s.weight(head.attention + ".out_proj.weight");
    Array& weight = tensor.mutable_value();
    const std::vector<real> before(weight.values().begin(), weight.values().end());
    const auto loss_at = [&](double gate) {
      for (std::int64_t r = 0; r < 12; ++r) {
        for (std::int64_t c = 0; c < 12; ++c) {
          const real w = before[r * 12 + c];
          weight.row(r)[c] = c / 4 == head.head ? static_cast<real>(gate * w) : w;
        }
      }
      return s.loss(batch);
    };
    // The quotient is of fourth order, because the loss is not linear. With a smaller step,
    // rounding errors would dominate.
    quotients.push_back(
        std::abs(8 * (loss_at(1.05) - loss_at(0.95)) - (loss_at(1.1) - loss_at(0.9))) / 0.6);
    loss_at(1);
  }
  double worst = 0;
  for (std::size_t first = 0; first < heads.size(); first += 3) {
    double squares = 0;
    for (std::size_t k = first; k < first + 3; ++k) squares += quotients[k] * quotients[k];
    for (std::size_t k = first; k < first + 3; ++k)
      worst = std::max(worst, std::abs(heads[k].importance - quotients[k] / std::sqrt(squares)));
  }
  HEED_CHECK_TRAINED("maximum difference from the difference quotient", worst, <, 0.02);
  Team two(2);
  const std::vector<HeadImportance> again =
      importance_of_heads(s.model(), s.config, s.run->data.valid, 1, two);
  for (std::size_t k = 0; k < heads.size(); ++k)
    BOOST_TEST(again[k].importance == heads[k].importance);
}

BOOST_AUTO_TEST_CASE(importance_is_computed_from_evenly_spaced_sequences) {
  Subject s;
  const Dataset& valid = s.run->data.valid;
  BatchOptions one;
  one.batch_sequences = 1;
  const std::vector<Batch> all = evaluation_batches(valid, one);
  BOOST_REQUIRE(all.size() == 20u);
  Dataset some;
  for (const std::size_t i : {0, 6, 13}) {
    some.source.push(valid.source[all[i].samples[0]]);
    some.target.push(valid.target[all[i].samples[0]]);
  }
  const auto found = importance_of_heads(s.model(), s.config, valid, 3, s.trainer->team()),
             expected = importance_of_heads(s.model(), s.config, some, 3, s.trainer->team());
  for (std::size_t k = 0; k < found.size(); ++k)
    BOOST_TEST(found[k].importance == expected[k].importance);
}

BOOST_AUTO_TEST_CASE(outputs_are_independent_of_a_removed_head) {
  Subject s;
  BatchStream stream(s.run->data.valid, {.batch_sequences = 4, .seed = 1});
  const Batch batch = stream.next();
  const HeadImportance head{"decoder.layers.0.multihead_attn", 1, 0};
  const double before = s.loss(batch);
  remove_head(s.model(), s.config, head);
  const auto heads =
      importance_of_heads(s.model(), s.config, s.run->data.valid, 5, s.trainer->team());
  for (const HeadImportance& h : heads)
    BOOST_TEST(h.removed == (h.attention == head.attention && h.head == head.head));
  const double without = s.loss(batch);
  BOOST_TEST(without != before);
  // The value projection of the head, rows 28 to 31, has no effect; rows of other heads have an
  // effect.
  Tensor tensor = s.weight("decoder.layers.0.multihead_attn.in_proj_weight");
  Array& in = tensor.mutable_value();
  for (std::int64_t r = 28; r < 32; ++r) in.row(r)[3] += 1;
  BOOST_TEST(s.loss(batch) == without);
  in.row(27)[3] += 1;
  BOOST_TEST(s.loss(batch) != without);
}

BOOST_AUTO_TEST_CASE(remove_weights_sets_the_smallest_weights_to_zero) {
  Subject s;
  std::vector<std::vector<real>> before;
  std::int64_t matrices = 0;
  for (const NamedTensor& p : s.model().parameters()) {
    before.emplace_back(p.tensor.value().values().begin(), p.tensor.value().values().end());
    if (p.tensor.shape().rank() == 2) matrices += p.tensor.size();
  }
  const std::int64_t removed = remove_weights(s.model(), 0.4);
  BOOST_TEST(removed == std::llround(0.4 * static_cast<double>(matrices)));
  real largest_zero = 0, smallest_kept = 1e9F;
  std::int64_t zeros = 0;
  std::size_t at = 0;
  for (const NamedTensor& p : s.model().parameters()) {
    const auto now = p.tensor.value().values();
    for (std::size_t i = 0; i < before[at].size(); ++i) {
      const real was = std::abs(before[at][i]);
      if (p.tensor.shape().rank() == 2 && now[i] == 0) {
        ++zeros;
        largest_zero = std::max(largest_zero, was);
      } else {
        BOOST_TEST(now[i] == before[at][i]);
        if (p.tensor.shape().rank() == 2) smallest_kept = std::min(smallest_kept, was);
      }
    }
    ++at;
  }
  BOOST_TEST(zeros == removed);
  BOOST_TEST(largest_zero <= smallest_kept);
  BOOST_TEST(remove_weights(s.model(), 0) == removed);  // weights that are zero count as removed
  BOOST_TEST(remove_weights(s.model(), 1) == matrices);
  for (const NamedTensor& p : s.model().parameters()) {
    if (p.tensor.shape().rank() == 2)
      BOOST_TEST(std::ranges::count(p.tensor.value().values(), real(0)) == p.tensor.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
