#include "nn/options.h"
#include "train/loop/step.h"

#include <cmath>
#include <limits>
#include <map>

#include "autograd/base/error.h"
#include "nn/layer_name.h"
#include "tests/learning.h"
#include "tests/train/support.h"
#include "tests/train/training.h"
#include "train/decode/model_input.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(step)

namespace {

std::vector<Batch> some_shards(const Dataset& data, std::int64_t count = 4) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < data.size(); ++i) samples.push_back(i);
  return shard(make_batch(data, samples), count);
}

/// The gradient norm of each layer, computed with autograd alone.
std::map<std::string, double> norms_of(const Model& model, const Batch& batch, double smoothing) {
  Pass pass;
  const Tensor loss =
      model.loss(model_input(batch), {smoothing, static_cast<double>(batch.labels.size())}, pass);
  const Gradients gradients = backward(loss);
  std::map<std::string, double> norms;
  for (const NamedTensor& p : model.parameters()) {
    const Array gradient = gradients[p.tensor];
    double& squares = norms[layer_of(p.name)];
    for (const real g : gradient.values()) squares += double{g} * double{g};
  }
  for (auto& [layer, norm] : norms) norm = std::sqrt(norm);
  return norms;
}

/// The gradient norm over all layers.
double total_norm(const std::map<std::string, double>& norms) {
  double squares = 0;
  for (const auto& [layer, norm] : norms) squares += norm * norm;
  return std::sqrt(squares);
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_reduces_the_loss, *boost::unit_test::label("learns")) {
  const Dataset data = reversals(24);
  ModelOptions pre = small_model(), post = pre;
  post.norm = NormPlace::post;
  ModelOptions bare = post;
  bare.final_norm = false;
  for (const auto& [name, options] :
       {std::pair("pre", pre), std::pair("post", post), std::pair("without a final norm", bare)}) {
    const std::unique_ptr<Model> model =
        make_seq2seq(options, vocabulary, vocabulary, true, training_seed());
    Optimizer optimizer({}, model->parameters());
    Team team(2);
    TrainStep step(*model, optimizer, team, {.clip_norm = 1.0});
    const std::vector<Batch> shards = some_shards(data);
    double first = 0, last = 0;
    for (std::int64_t t = 1; t <= 150; ++t) {
      const LossCounts counts = step.run(shards, t, training_rate(5e-3)).counts;
      last = counts.loss / static_cast<double>(counts.tokens);
      if (t == 1) first = last;
    }
    BOOST_TEST(first > 2.0);
    HEED_CHECK_LEARNED(std::string(name) + ": ratio of the last loss to the first", last / first, <,
                       0.5);
  }
}

BOOST_AUTO_TEST_CASE(constants_of_adam_are_not_rounded_to_float) {
  // With a constant gradient, every update equals the learning rate if 1 − β₂ᵗ and 1 − β₂ use the
  // same β₂. If only one of them used 0.999 rounded to float, each update would differ from the
  // learning rate by 6e-6.
  OptimOptions options;
  options.betas = {0.9, 0.999};
  Parameters one{{"w", Tensor::variable(Array::zeros({1}))}};
  Optimizer optimizer(options, one);
  for (int t = 1; t <= 3; ++t) optimizer.step({Array::full({1}, 1)}, 1);
  BOOST_TEST(std::abs(one[0].tensor.item() + 3) < 3e-6);
}

BOOST_AUTO_TEST_CASE(counts_and_norm_of_shards_equal_those_of_the_batch) {
  const Dataset data = reversals(11);
  const std::unique_ptr<Model> model = small_seq2seq();
  const Batch batch = some_shards(data, 1).front();
  Pass pass;
  LossCounts expected;
  model->loss(model_input(batch), {0.1, 1, &expected}, pass);
  const std::map<std::string, double> norms = norms_of(*model, batch, 0.1);
  Optimizer optimizer({}, model->parameters());
  Team team(2);
  TrainStep step(*model, optimizer, team, {.label_smoothing = 0.1});
  const StepResult result = step.run(shard(batch, 4), 1, 0);  // learning rate 0: no weight changes
  BOOST_TEST(result.counts.tokens == expected.tokens);
  BOOST_TEST(result.counts.tokens == static_cast<std::int64_t>(batch.labels.size()));
  BOOST_TEST(result.counts.correct == expected.correct);
  BOOST_TEST(std::abs(result.counts.loss / expected.loss - 1) < 1e-5);
  BOOST_TEST(std::abs(result.counts.nll / expected.nll - 1) < 1e-5);
  BOOST_TEST(std::abs(result.gradient_norm / total_norm(norms) - 1) < 1e-5);
  const std::map<std::string, double> by_layer = step.gradient_norms();
  BOOST_TEST((by_layer.contains("encoder.layers.0") && by_layer.contains("decoder.norm")));
  BOOST_TEST(by_layer.size() == norms.size());
  for (const auto& [layer, norm] : norms)
    BOOST_TEST(std::abs(by_layer.at(layer) / norm - 1) < 1e-5, layer);
  BOOST_TEST(std::abs(result.gradient_norm / total_norm(by_layer) - 1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(layer_name_is_derived_from_parameter_name) {
  BOOST_TEST(layer_of("encoder.layers.10.norm1.weight") == "encoder.layers.10");
  BOOST_TEST(layer_of("encoder.stages.1.layers.0.positions.weight") == "encoder.stages.1.layers.0");
  BOOST_TEST(layer_of("encoder.stages.1.merge.norm.weight") == "encoder.stages.1.merge.norm");
  BOOST_TEST(layer_of("encoder.norm.bias") == "encoder.norm");
  BOOST_TEST(layer_of("embedding.weight") == "embedding");
  BOOST_TEST(layer_of("classifier") == "classifier");
}

BOOST_AUTO_TEST_CASE(clipping_limits_the_norm_of_the_update) {
  const Dataset data = reversals(8);
  OptimOptions plain;
  plain.name = OptimizerKind::sgd;
  plain.momentum = 0;
  for (const double clip : {0.0, 0.01, 1e6}) {
    const std::unique_ptr<Model> model = small_seq2seq();
    const Bits before = bits_of(model->parameters());
    Optimizer optimizer(plain, model->parameters());
    Team team(1);
    TrainStep step(*model, optimizer, team, {.clip_norm = clip});
    const double norm = step.run(some_shards(data), 1, 1.0).gradient_norm;
    BOOST_TEST(norm > 0.1);
    const Bits after = bits_of(model->parameters());
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (std::size_t k = 0; k < before[i].size(); ++k)
        squares += std::pow(double{after[i][k]} - double{before[i][k]}, 2);
    }
    const double expected = clip == 0.01 ? 0.01 : norm;
    BOOST_TEST(std::abs(std::sqrt(squares) / expected - 1) < 1e-3,
               "clip " << clip << ": the update has norm " << std::sqrt(squares));
  }
}

BOOST_AUTO_TEST_CASE(nonfinite_step_changes_neither_weights_nor_moments) {
  const Dataset data = reversals(8);
  for (const float broken :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const double clip : {0.0, 1.0}) {
      const std::unique_ptr<Model> model = small_seq2seq();
      Optimizer optimizer({}, model->parameters());
      Team team(2);
      TrainStep step(*model, optimizer, team, {.clip_norm = clip});
      const std::vector<Batch> shards = some_shards(data);
      step.run(shards, 1, 1e-3);
      Tensor weight = model->parameters()[5].tensor;
      const float good = weight.value().data()[0];
      weight.mutable_value().data()[0] = broken;
      const Bits before = bits_of(model->parameters()), moments = bits_of(optimizer.state());
      const std::string message = error_of(Exit::non_finite, [&] { step.run(shards, 2, 1e-3); });
      BOOST_TEST(contains(message, "step 2"));
      BOOST_TEST(same_bits(bits_of(model->parameters()), before));
      BOOST_TEST(same_bits(bits_of(optimizer.state()), moments));
      BOOST_TEST(optimizer.steps() == 1);
      weight.mutable_value().data()[0] = good;  // training can continue
      BOOST_CHECK_NO_THROW(step.run(shards, 2, 1e-3));
    }
  }
}

BOOST_AUTO_TEST_CASE(batch_without_targets_is_refused) {
  const std::unique_ptr<Model> model = small_seq2seq();
  Optimizer optimizer({}, model->parameters());
  Team team(1);
  TrainStep step(*model, optimizer, team, {});
  const std::vector<Batch> nothing(2);
  error_of(Exit::failed, [&] { step.run(nothing, 1, 1e-3); });
}

BOOST_AUTO_TEST_CASE(error_in_a_shard_is_rethrown) {
  const std::unique_ptr<Model> model = small_seq2seq();
  Optimizer optimizer({}, model->parameters());
  Team team(2);
  TrainStep step(*model, optimizer, team, {});
  std::vector<Batch> shards = some_shards(reversals(8));
  shards.back().source.ids.front() = vocabulary;  // no such token
  const Bits before = bits_of(model->parameters());
  error_of(Exit::failed, [&] { step.run(shards, 1, 1e-3); });
  BOOST_TEST(same_bits(bits_of(model->parameters()), before));
}

BOOST_AUTO_TEST_CASE(dropout_differs_between_steps_and_is_repeatable) {
  const std::unique_ptr<Model> model = small_seq2seq(0.3);
  Optimizer optimizer({}, model->parameters());
  Team team(2);
  TrainStep step(*model, optimizer, team, {});
  const std::vector<Batch> shards = some_shards(reversals(24));
  const auto loss = [&](std::int64_t t) { return step.run(shards, t, 0).counts.loss; };
  const double first = loss(1), second = loss(2);  // learning rate 0: no weight changes
  BOOST_TEST(first != second);
  BOOST_TEST(loss(1) == first);
}

BOOST_AUTO_TEST_SUITE_END()
