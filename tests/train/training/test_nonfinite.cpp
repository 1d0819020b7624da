// NaN and infinities are detected in the step in which they occur, before the update, and traced to
// their origin.
#include <cmath>
#include <limits>

#include "autograd/base/error.h"
#include "autograd/io/formats/safetensors.h"
#include "tests/train/injector.h"
#include "tests/train/trainer_support.h"
#include "tests/train/training.h"
#include "train/loop/step.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(nonfinite)

namespace {

constexpr real not_a_number = std::numeric_limits<real>::quiet_NaN();
constexpr real infinity = std::numeric_limits<real>::infinity();

/// Steps of a small model with one thread and one shard, so that an Injector observes all ops.
struct Steps {
  Dataset data = reversals(9);
  std::unique_ptr<Model> model = small_seq2seq(0.1);
  Optimizer optimizer{{}, model->parameters()};
  Team team{1};
  TrainStep step{*model, optimizer, team, {.shards = 1, .clip_norm = 1}};
  std::int64_t count = 0;

  StepResult next() {
    return step.run(std::vector<Batch>{make_batch(data, {0, 1, 2, 3, 4, 5, 6, 7, 8})}, ++count,
                    1e-3);
  }
  /// Runs a step that must fail and must not change weights or moments. Returns the error message.
  std::string failure() {
    const Bits weights = bits_of(model->parameters()), moments = bits_of(optimizer.state());
    std::string message;
    try {
      next();
    } catch (const Error& e) {
      BOOST_TEST(static_cast<int>(e.code) == 5);
      message = e.what();
    }
    BOOST_TEST(same_bits(bits_of(model->parameters()), weights));
    BOOST_TEST(same_bits(bits_of(optimizer.state()), moments));
    return message;
  }
};

/// The config of a run in which no step after the first succeeds.
Config hopeless() {
  Config c = small_run(60);
  c.optim.lr = 1e30;  // the squares of the weights overflow after the first update
  c.optim.schedule.warmup = 0;
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nonfinite_weight_is_named_in_the_message) {
  Steps steps;
  Tensor weight = steps.model->parameters()[3].tensor;
  weight.mutable_value().data()[2] = not_a_number;
  const std::string message = steps.failure();
  BOOST_TEST(contains(message, "step 1: the loss is nan"), message);
  BOOST_TEST(
      contains(message, "first non-finite tensor: the weight " + steps.model->parameters()[3].name),
      message);
  BOOST_TEST(contains(message, "nan at row"), message);
}

BOOST_AUTO_TEST_CASE(first_nonfinite_result_is_named_with_position_and_samples) {
  Steps steps;
  Injector injector;
  steps.next();
  injector.learn();
  // The first result is the embedding of the source, one row per source token.
  injector.place = {true, 0, 5 * 12 + 7, infinity};
  const std::string message = steps.failure();
  BOOST_TEST(contains(message, "first non-finite tensor: the result of Embedding at"), message);
  BOOST_TEST(contains(message, "inf at row 5, column 7"), message);
  BOOST_TEST(contains(message, "in shard 1 of 1, samples 0, 1, 2, 3, 4, 5, 6, 7, 8"), message);
}

BOOST_AUTO_TEST_CASE(nonfinite_gradient_is_named_if_the_loss_is_finite) {
  Steps steps;
  Injector injector;
  steps.next();
  injector.learn();
  injector.place = {false, injector.gradients_seen / 2, 3, -infinity};
  const std::string message = steps.failure();
  BOOST_TEST(contains(message, "first non-finite tensor: the gradient of"), message);
  BOOST_TEST(contains(message, "-inf at row"), message);
  BOOST_TEST(!contains(message, "the loss is nan"), message);
}

BOOST_AUTO_TEST_CASE(nonfinite_value_that_does_not_recur_is_reported) {
  Steps steps;
  Injector injector;
  steps.next();
  injector.learn();
  injector.results *= 1000;  // the value is replaced only in the first of a thousand steps
  injector.place = {true, 4, 0, not_a_number};
  BOOST_TEST(contains(steps.failure(), "every tensor of every shard is finite"));
}

BOOST_AUTO_TEST_CASE(run_saves_only_finite_values_before_a_nonfinite_step) {
  TempFolder temp;
  Run run(hopeless(), temp.path / "run");
  BOOST_CHECK_EXCEPTION(run.train(false), Error, [](const Error& e) {
    return e.code == Exit::non_finite && contains(e.what(), "the weights are as before the step");
  });
  // The failed step does not count as skipped.
  const std::int64_t last = run.checkpoints().newest_valid().checkpoint->step;
  BOOST_TEST(run.state(last).at("skipped_in_a_row") == 0);
  // All saved values are finite.
  for (const std::int64_t step : run.checkpoints().steps()) {
    for (const char* file : {"model.safetensors", "training.safetensors"}) {
      const SafetensorsFile saved = SafetensorsFile::read(run.checkpoints().folder_of(step) / file);
      for (const TensorView& t : saved.tensors())
        for (const float x : t.values<float>()) BOOST_REQUIRE(std::isfinite(x));
    }
  }
}

BOOST_AUTO_TEST_CASE(nonfinite_weights_are_not_saved) {
  TempFolder temp;
  Run run(small_run(10), temp.path / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  Tensor table = trainer.model().parameters().front().tensor;
  table.mutable_value().data()[0] = infinity;  // this token occurs in no sentence
  BOOST_CHECK_EXCEPTION(trainer.train(), Error,
                        [](const Error& e) { return e.code == Exit::non_finite; });
  BOOST_TEST(run.checkpoints().steps().empty());
}

BOOST_AUTO_TEST_CASE(nonfinite_weight_hidden_by_relu_is_found_in_the_first_step) {
  TempFolder temp;
  Run run(small_run(10), temp.path / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  for (const NamedTensor& p : trainer.model().parameters()) {
    if (!p.name.ends_with("layers.0.linear1.bias")) continue;
    Tensor bias = p.tensor;
    bias.mutable_value().data()[3] = -infinity;  // relu(−inf) is 0, and so is its gradient
  }
  BOOST_CHECK_EXCEPTION(trainer.train(), Error, [](const Error& e) {
    return e.code == Exit::non_finite && contains(e.what(), "step 1: the loss is ") &&
           contains(e.what(), "but a weight is not finite") && contains(e.what(), "linear1.bias") &&
           contains(e.what(), "start again: heed train with --overwrite");
  });
  BOOST_TEST(run.checkpoints().steps().empty());
}

BOOST_AUTO_TEST_CASE(skipped_steps_are_counted_and_recorded) {
  TempFolder temp;
  Config c = small_run(30);
  c.train.shards = 1;
  c.train.on_nonfinite = OnNonFinite::skip;
  Run run(c, temp.path / "run"), plain(c, temp.path / "plain");
  BOOST_TEST(plain.train(false) == 0);
  {
    Injector injector;
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    injector.place = {true, 1000, 0, not_a_number};
    injector.results = 1 << 30;  // the index counts over the whole run
    BOOST_TEST(trainer.train() == 0);
  }
  BOOST_TEST(run.count("skipped") == 1);
  BOOST_TEST(plain.count("skipped") == 0);
  BOOST_TEST(run.state(30).at("skipped") == 1);
  BOOST_TEST(plain.state(30).at("skipped") == 0);
  BOOST_TEST((run.file(30, "model.safetensors") != plain.file(30, "model.safetensors")));
  // Both runs have read the same batches. In the run with a skipped step, Adam has made one update
  // fewer.
  BOOST_TEST(run.state(30).at("batch") == plain.state(30).at("batch"));
  Run again(c, temp.path / "run");
  Trainer resumed(again.config, again.paths(), again.data, again.run_log);
  resumed.restore();
  BOOST_TEST(resumed.optimizer_steps() == 29);
}

BOOST_AUTO_TEST_CASE(run_ends_after_too_many_consecutive_skips) {
  TempFolder temp;
  Config c = hopeless();
  c.train.on_nonfinite = OnNonFinite::skip;
  c.train.best = Metric::exact_match;
  Run run(c, temp.path / "run");
  BOOST_CHECK_EXCEPTION(run.train(false), Error,
                        [](const Error& e) { return e.code == Exit::non_finite; });
  BOOST_TEST(run.count("valid") > 0);
  BOOST_TEST(!run.checkpoints().linked("best"));  // because the loss is NaN
  // A resumed run continues the count of consecutive skips.
  const std::int64_t stopped = run.checkpoints().newest_valid().checkpoint->step;
  BOOST_CHECK_EXCEPTION(run.train(true), Error, [](const Error& e) {
    return contains(e.what(), "21 steps in a row were not finite");
  });
  BOOST_TEST(run.checkpoints().newest_valid().checkpoint->step == stopped);
}

BOOST_AUTO_TEST_SUITE_END()
