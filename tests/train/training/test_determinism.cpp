// The seed and the number of shards determine the result of training bit for bit. The number of
// threads has no effect.
#include "tests/train/support.h"
#include "tests/train/training.h"
#include "train/loop/step.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(determinism)

namespace {

struct Trace {
  std::vector<double> losses, norms;
  Bits weights, moments;
};

bool operator==(const Trace& a, const Trace& b) {
  return a.losses == b.losses && a.norms == b.norms && same_bits(a.weights, b.weights) &&
         same_bits(a.moments, b.moments);
}

Trace train(bool lm, std::int64_t threads, std::int64_t shards, std::uint64_t seed = 1) {
  const Dataset data = lm ? random_text(600) : reversals(200);
  BatchOptions batches;
  batches.batch_tokens = 60;
  batches.batch_sequences = lm ? 6 : 0;
  batches.context = lm ? 8 : 0;
  BatchStream stream(data, batches);
  const std::unique_ptr<Model> model = lm ? small_lm(0.3) : small_seq2seq(0.3);
  Optimizer optimizer({}, model->parameters());
  Team team(threads);
  TrainStep step(*model, optimizer, team, {seed, shards, 0.1, 1.0});
  Trace trace;
  for (std::int64_t t = 1; t <= 60; ++t) {
    const StepResult result = step.run(shard(stream.next(), shards), t, 2e-3);
    trace.losses.push_back(result.counts.loss);
    trace.norms.push_back(result.gradient_norm);
  }
  trace.weights = bits_of(model->parameters());
  trace.moments = bits_of(optimizer.state());
  return trace;
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_is_bitwise_independent_of_the_number_of_threads) {
  for (const bool lm : {false, true}) {
    const Trace one = train(lm, 1, 4);
    for (const std::int64_t threads : {1, 2, 3, 4}) {
      BOOST_TEST((train(lm, threads, 4) == one), (lm ? "lm, " : "seq2seq, ")
                                                     << threads << " threads");
    }
    for (const std::int64_t shards : {2, 3, 5, 8}) {
      BOOST_TEST((train(lm, 4, shards) == train(lm, 1, shards)), shards << " shards");
    }
    BOOST_TEST(!(train(lm, 1, 4, 2) == one));  // a different seed changes the dropout
  }
}

BOOST_AUTO_TEST_SUITE_END()
