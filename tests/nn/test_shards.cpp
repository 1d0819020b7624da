// Gradients of a batch do not depend on how it is cut into shards, but for rounding.
#include "data/batcher.h"
#include "optim/optimizer.h"
#include "tests/nn/support.h"
#include "train/step.h"
#include "train/team.h"

HEED_BEGIN

namespace {

Batch random_batch(std::int64_t sequences, std::uint32_t vocabulary) {
  std::vector<std::int32_t> source_lengths, target_lengths;
  for (std::int64_t i = 0; i < sequences; ++i) {
    source_lengths.push_back(static_cast<std::int32_t>(1 + (i * 5) % 7));
    target_lengths.push_back(static_cast<std::int32_t>(1 + (i * 3) % 6));
  }
  const Pairs pairs(source_lengths, target_lengths, vocabulary);
  Batch batch{pairs.source,     pairs.source_offsets, pairs.target_in,
              pairs.target_out, pairs.target_offsets, {}};
  for (std::int64_t i = 0; i < sequences; ++i) batch.samples.push_back(i);
  return batch;
}

/// One sequence a shard.
std::vector<Batch> sequence_by_sequence(const Batch& batch) {
  const auto cut = [](const std::vector<std::int32_t>& v, const std::vector<std::int32_t>& at,
                      std::size_t i) {
    return std::vector<std::int32_t>(v.begin() + at[i], v.begin() + at[i + 1]);
  };
  std::vector<Batch> all;
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    Batch one;
    one.source = cut(batch.source, batch.source_offsets, i);
    one.target_in = cut(batch.target_in, batch.target_offsets, i);
    one.target_out = cut(batch.target_out, batch.target_offsets, i);
    one.source_offsets = {0, static_cast<std::int32_t>(one.source.size())};
    one.target_offsets = {0, static_cast<std::int32_t>(one.target_in.size())};
    one.samples = {batch.samples[i]};
    all.push_back(std::move(one));
  }
  return all;
}

struct Outcome {
  std::vector<Array> gradients;
  StepResult result;
};

/// The gradients of one step. Plain descent at rate 1 writes them into the weights: w − g.
Outcome gradients_of(const std::vector<Batch>& shards, std::int64_t threads,
                     std::uint32_t vocabulary) {
  ModelOptions o = small_options();
  o.d_model = 12;
  o.heads = 3;
  o.encoder_layers = o.decoder_layers = 2;
  const std::unique_ptr<Model> model = make_seq2seq(o, vocabulary, vocabulary, true, 1);
  OptimOptions plain;
  plain.name = OptimizerKind::sgd;
  plain.momentum = 0;
  Optimizer optimizer(plain, model->parameters());
  Team team(threads);
  TrainStep step(*model, optimizer, team, {.label_smoothing = 0.1});
  Outcome outcome;
  for (const NamedTensor& p : model->parameters()) {
    Tensor handle = p.tensor;
    std::fill_n(handle.mutable_value().data(), handle.size(), real(0));
  }
  randomise(model->parameters());
  std::vector<Array> before;
  for (const NamedTensor& p : model->parameters()) before.push_back(p.tensor.value().clone());
  outcome.result = step.run(shards, 1, 1.0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::int64_t k = 0; k < before[i].size(); ++k)
      before[i].data()[k] -= model->parameters()[i].tensor.value().data()[k];
    outcome.gradients.push_back(before[i]);
  }
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shards)

BOOST_AUTO_TEST_CASE(one_shard_of_32_and_32_of_one_agree) {
  constexpr std::uint32_t vocabulary = 17;
  const Batch batch = random_batch(32, vocabulary);
  const Outcome whole = gradients_of({batch}, 1, vocabulary);
  double square = 0;
  for (const Array& g : whole.gradients) {
    for (const real v : g.values()) square += v * v;
  }
  BOOST_TEST(std::abs(std::sqrt(square) / whole.result.gradient_norm - 1) < 1e-12);
  for (const auto& [cut, threads] :
       {std::pair{sequence_by_sequence(batch), 2}, {shard(batch, 4), 3}, {shard(batch, 7), 1}}) {
    const Outcome parts = gradients_of(cut, threads, vocabulary);
    BOOST_TEST(std::abs(parts.result.counts.loss / whole.result.counts.loss - 1) < 1e-12);
    BOOST_TEST(parts.result.counts.tokens == whole.result.counts.tokens);
    BOOST_TEST(parts.result.counts.correct == whole.result.counts.correct);
    BOOST_TEST(std::abs(parts.result.gradient_norm / whole.result.gradient_norm - 1) < 1e-12);
    double worst = 0;
    for (std::size_t i = 0; i < parts.gradients.size(); ++i) {
      worst = std::max(worst, difference(parts.gradients[i], whole.gradients[i]));
    }
    BOOST_TEST(worst < 1e-12, cut.size() << " shards are off by " << worst);
    BOOST_TEST_MESSAGE(cut.size() << " shards: gradients differ by up to " << worst);
  }
}

BOOST_AUTO_TEST_CASE(a_shard_without_targets_is_no_obstacle) {
  const Batch batch = random_batch(3, 17);
  std::vector<Batch> shards{batch};
  shards.insert(shards.begin(), Batch{});
  shards.front().source_offsets = shards.front().target_offsets = {0};
  const Outcome with = gradients_of(shards, 2, 17), without = gradients_of({batch}, 1, 17);
  for (std::size_t i = 0; i < with.gradients.size(); ++i) {
    BOOST_TEST(difference(with.gradients[i], without.gradients[i]) < 1e-12);
  }
  BOOST_CHECK_THROW(gradients_of({Batch{}}, 1, 17), Error);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
