// Gradients of a batch do not depend on how it is split into shards, except for rounding.
#include <fmt/format.h>

#include <string>

#include "autograd/base/team.h"
#include "data/batches/batcher.h"
#include "optim/optimizer.h"
#include "tests/nn/support.h"
#include "train/loop/step.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(shards)

namespace {

constexpr std::uint32_t vocabulary = 17;

/// The options of a model and of its loss.
struct Setting {
  ModelOptions model = small_options();
  bool language_model = false;
  bool one_vocabulary = true;
  double smoothing = 0.1;

  Setting() {
    model.d_model = 12;
    model.heads = 3;
    model.encoder_layers = model.decoder_layers = 2;
  }
  std::unique_ptr<Generative> make() const {
    if (language_model) return make_language_model(model, vocabulary, 1);
    return make_seq2seq(model, one_vocabulary ? vocabulary : vocabulary + 5, vocabulary,
                        one_vocabulary, 1);
  }
  std::string name() const {
    return fmt::format("{}, {} norm, {} norm, positions: {}, {}{}, smoothing {}",
                       language_model ? "language model" : "seq2seq", name_of(model.norm),
                       name_of(model.norm_kind), name_of(model.positions),
                       model.tie_embeddings ? "tied" : "untied",
                       one_vocabulary ? "" : ", two vocabularies", smoothing);
  }
};

/// A batch of sequences with random lengths from 1 to 14; without sources for a language model.
Batch random_batch(std::int64_t sequences, bool language_model = false) {
  Random random({.seed = 5, .stream = Stream::check});
  std::vector<std::int32_t> source_lengths, target_lengths;
  for (std::int64_t i = 0; i < sequences; ++i) {
    source_lengths.push_back(static_cast<std::int32_t>(1 + random.below(14)));
    target_lengths.push_back(static_cast<std::int32_t>(1 + random.below(14)));
  }
  const Pairs pairs(source_lengths, target_lengths, vocabulary);
  Batch batch;
  if (!language_model)
    batch.source = {.ids = pairs.source, .features = {}, .offsets = pairs.source_offsets};
  batch.target = {.ids = pairs.target_in, .features = {}, .offsets = pairs.target_offsets};
  batch.labels = pairs.target_out;
  for (std::int64_t i = 0; i < sequences; ++i) batch.samples.push_back(i);
  return batch;
}

/// Splits a batch into shards of one sequence.
std::vector<Batch> sequence_by_sequence(const Batch& batch) {
  std::vector<Batch> all;
  for (std::int64_t i = 0; i < batch.sequences(); ++i) {
    const auto rows = batch.target.offsets.begin() + i;
    all.push_back({batch.source.part(i, i + 1),
                   batch.target.part(i, i + 1),
                   {batch.labels.begin() + rows[0], batch.labels.begin() + rows[1]},
                   {batch.samples[static_cast<std::size_t>(i)]}});
  }
  return all;
}

struct Outcome {
  std::vector<std::string> names;
  std::vector<Array> gradients;
  StepResult result;
};

/// The gradients of one step, recovered from the weights after a step of plain gradient descent,
/// w − rate · g. The rate is so large that even gradients much smaller than w are recovered in full
/// precision.
Outcome gradients_of(const std::vector<Batch>& shards, std::int64_t threads,
                     const Setting& setting = {}) {
  const double rate = std::ldexp(1.0, 40);
  const std::unique_ptr<Generative> model = setting.make();
  OptimOptions plain;
  plain.name = OptimizerKind::sgd;
  plain.momentum = 0;
  Optimizer optimizer(plain, model->parameters());
  Team team(threads);
  TrainStep step(*model, optimizer, team, {.label_smoothing = setting.smoothing});
  Outcome outcome;
  randomise(model->parameters());
  for (const NamedTensor& p : model->parameters()) {
    outcome.names.push_back(p.name);
    outcome.gradients.push_back(p.tensor.value().clone());
  }
  outcome.result = step.run(shards, 1, rate);
  for (std::size_t i = 0; i < outcome.gradients.size(); ++i) {
    Array& g = outcome.gradients[i];
    const real* const after = model->parameters()[i].tensor.value().data();
    for (std::int64_t k = 0; k < g.size(); ++k) g.data()[k] = (g.data()[k] - after[k]) / rate;
  }
  return outcome;
}

double largest_of(const Array& x) {
  double largest = 0;
  for (const real v : x.values()) largest = std::max(largest, std::abs(v));
  return largest;
}

/// The maximum, over all parameters, of the difference between the gradients in a and b, relative
/// to the largest magnitude of the gradient in b. The test fails if a gradient in b is zero or a
/// relative difference exceeds 10⁻¹².
double worst_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (std::size_t i = 0; i < b.gradients.size(); ++i) {
    const double scale = largest_of(b.gradients[i]);
    BOOST_TEST(scale > 0, b.names[i] << ": the gradient is zero");
    double apart = 0;
    for (std::int64_t k = 0; k < b.gradients[i].size(); ++k) {
      apart = std::max(apart, std::abs(a.gradients[i].data()[k] - b.gradients[i].data()[k]));
    }
    BOOST_TEST(apart <= 1e-12 * scale, b.names[i] << " differs by " << apart / scale);
    worst = std::max(worst, apart / scale);
  }
  return worst;
}

/// Seq2seq and language models: pre and post norm, every position scheme, tied and untied, with and
/// without smoothing, layer and RMS norm, one or two embedding tables.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const bool language_model : {false, true}) {
    for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
      for (const PositionKind positions : every<PositionKind>()) {
        for (const bool tied : {true, false}) {
          for (const double smoothing : {0.0, 0.1}) {
            Setting s;
            s.language_model = language_model;
            s.model.norm = norm;
            s.model.positions = positions;
            s.model.tie_embeddings = tied;
            s.model.norm_kind = smoothing > 0 ? NormKind::layer : NormKind::rms;
            s.one_vocabulary = language_model || smoothing > 0;
            s.smoothing = smoothing;
            all.push_back(s);
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_do_not_depend_on_division_into_shards) {
  double worst = 0;
  for (const Setting& setting : settings()) {
    BOOST_TEST_CONTEXT(setting.name()) {
      const Batch batch = random_batch(32, setting.language_model);
      const Outcome whole = gradients_of({batch}, 1, setting);
      double square = 0;
      for (const Array& g : whole.gradients) {
        for (const real v : g.values()) square += v * v;
      }
      BOOST_TEST(std::abs(std::sqrt(square) / whole.result.gradient_norm - 1) < 1e-12);
      for (const auto& [cut, threads] : {std::pair{sequence_by_sequence(batch), 2},
                                         {shard(batch, 4), 3},
                                         {shard(batch, 7), 1}}) {
        const Outcome parts = gradients_of(cut, threads, setting);
        BOOST_TEST(std::abs(parts.result.counts.loss / whole.result.counts.loss - 1) < 1e-12);
        BOOST_TEST(parts.result.counts.tokens == whole.result.counts.tokens);
        BOOST_TEST(parts.result.counts.correct == whole.result.counts.correct);
        BOOST_TEST(std::abs(parts.result.gradient_norm / whole.result.gradient_norm - 1) < 1e-12);
        worst = std::max(worst, worst_difference(parts, whole));
      }
    }
  }
  BOOST_TEST_MESSAGE("maximum relative difference of gradients between divisions: " << worst);
}

BOOST_AUTO_TEST_CASE(shard_without_targets_does_not_change_gradients) {
  const Batch batch = random_batch(3);
  std::vector<Batch> shards{batch};
  shards.insert(shards.begin(), Batch{});
  shards.front().source.offsets = shards.front().target.offsets = {0};
  const Outcome with = gradients_of(shards, 2), without = gradients_of({batch}, 1);
  for (std::size_t i = 0; i < with.gradients.size(); ++i) {
    BOOST_TEST(difference(with.gradients[i], without.gradients[i]) < 1e-12);
  }
  BOOST_CHECK_THROW(gradients_of({Batch{}}, 1), Error);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
