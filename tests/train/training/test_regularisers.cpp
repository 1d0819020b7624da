// R-Drop, word cutoff, subword sampling and the moving average of the weights.
#include <cmath>
#include <set>

#include "nn/weights.h"
#include "tests/train/trainer_support.h"
#include "tests/train/training.h"
#include "train/loop/augment.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(regularisers)

namespace {

Config regularised(std::int64_t steps) {
  Config c = small_run(steps);
  c.tokenizer.kind = TokenizerKind::sentencepiece;
  c.tokenizer.vocab_size = 20;
  c.tokenizer.sample.alpha = 0.3;
  c.data.cutoff = 0.05;
  c.train.rdrop = 2;
  c.train.ema = 0.9;
  return c;
}

/// The tensors of one file of a checkpoint, by name.
std::map<std::string, std::vector<real>> tensors(const Run& run, std::int64_t step,
                                                 const std::string& name) {
  const SafetensorsFile file = SafetensorsFile::read(run.checkpoints().folder_of(step) / name);
  std::map<std::string, std::vector<real>> all;
  for (const TensorView& view : file.tensors()) {
    std::size_t n = 1;
    for (const std::int64_t extent : view.shape) n *= static_cast<std::size_t>(extent);
    copy_values(view, all.try_emplace(view.name, n).first->second);
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rdrop_repeats_a_shard_and_cutoff_differs_between_copies) {
  Batch batch;
  std::vector<std::int32_t> long_line(400, 7);
  long_line.push_back(Tokenizer::eos);
  batch.source.push(long_line);
  batch.source.push(std::vector<std::int32_t>{5, 6, Tokenizer::eos});
  batch.target.push(std::vector<std::int32_t>{Tokenizer::bos, 3});
  batch.target.push(std::vector<std::int32_t>{Tokenizer::bos});
  batch.labels = {3, 2, 2};
  batch.samples = {8, 9};
  BOOST_TEST(!augmented(batch, 0, 1, {}));

  const Batch twice = *augmented(batch, 0, 1, {.rdrop = 1});
  BOOST_TEST((twice.source.part(0, 2) == batch.source && twice.source.part(2, 4) == batch.source));
  BOOST_TEST((twice.target.part(0, 2) == batch.target && twice.target.part(2, 4) == batch.target));
  BOOST_TEST((twice.labels == batch.labels));
  BOOST_TEST((twice.samples == std::vector<std::int64_t>{8, 9, 8, 9}));

  const StepOptions options{.seed = 3, .rdrop = 1, .cutoff = 0.25};
  const auto cut = [&](std::int64_t shard, std::int64_t step) {
    return *augmented(batch, shard, step, options);
  };
  BOOST_TEST((cut(1, 2) == cut(1, 2)));
  BOOST_TEST((!(cut(1, 2) == cut(1, 3)) && !(cut(1, 2) == cut(0, 2))));
  const Batch some = cut(0, 1);
  const auto unknown = std::ranges::count(some.source.part(0, 1).ids, Tokenizer::unk);
  BOOST_TEST((unknown > 70 && unknown < 130));  // 400 tokens, each replaced with probability 0.25
  BOOST_TEST((some.source.part(0, 1) != some.source.part(2, 3)));
  for (const std::int64_t i : {0, 2}) BOOST_TEST(some.source.part(i, i + 1).ids.back() == 2);
  for (std::int64_t i = 0; i < 4; ++i) BOOST_TEST(some.target.part(i, i + 1).ids.front() == 1);
  BOOST_TEST((some.labels == batch.labels));
}

BOOST_AUTO_TEST_CASE(rdrop_changes_training_only_with_dropout, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config once = small_run(10);
  once.optim.name = OptimizerKind::sgd;  // Adam would divide rounding errors by small gradients
  once.optim.lr = 0.1;
  Config twice = once;
  once.model->dropout = twice.model->dropout = 0.0;
  twice.train.rdrop = 3;
  Run a(once, folder / "once"), b(twice, folder / "twice");
  a.train(false);
  b.train(false);
  const auto x = tensors(a, 10, "model.safetensors"), y = tensors(b, 10, "model.safetensors");
  for (const auto& [name, values] : x) {
    for (std::size_t i = 0; i < values.size(); ++i)
      BOOST_CHECK_SMALL(double{values[i]} - y.at(name)[i], 1e-5);
  }
  // With dropout, the two copies of a batch have different outputs, whose divergence is part of the
  // loss.
  Config with_dropout = small_run(10), divergent = with_dropout;
  divergent.train.rdrop = 3;
  divergent.train.log_every = with_dropout.train.log_every = 10;
  Run c(with_dropout, folder / "dropout"), d(divergent, folder / "divergent");
  c.train(false);
  d.train(false);
  const auto loss_over_nll = [](const Run& run) {
    for (const nlohmann::json& r : run.metrics()) {
      if (r.at("kind") == "train") return r.at("loss").get<double>() - r.at("nll").get<double>();
    }
    return 0.0;
  };
  HEED_CHECK_TRAINED("increase of the loss by R-Drop", loss_over_nll(d) - loss_over_nll(c), >,
                     0.05);
}

BOOST_AUTO_TEST_CASE(resumed_run_with_all_regularisers_equals_an_uninterrupted_run) {
  const TempFolder folder;
  Config two_threads = regularised(40);
  two_threads.threads = 2;
  Run whole(two_threads, folder / "whole"), parts(regularised(20), folder / "parts");
  check_resumed_equals_whole(whole, parts);
}

BOOST_AUTO_TEST_CASE(saved_model_with_ema_contains_the_moving_average_of_the_weights) {
  const TempFolder folder;
  Config c = small_run(4);
  c.train.ema = 0.28;  // the third update is the first with this decay
  c.train.save_every = 1;
  Run run(c, folder / "run");
  {
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    std::map<std::string, std::vector<real>> mean;
    for (const NamedTensor& p : trainer.model().parameters()) {
      const auto values = p.tensor.value().values();
      mean[p.name].assign(values.begin(), values.end());
    }
    trainer.train();
    for (std::int64_t step = 1; step <= 4; ++step) {
      const auto saved = tensors(run, step, "model.safetensors"),
                 training = tensors(run, step, "training.safetensors");
      const double d = step == 1 ? 2.0 / 11 : step == 2 ? 3.0 / 12 : 0.28;
      for (auto& [name, values] : mean) {
        const std::vector<real>& weights = training.at("weights." + name);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<real>(d * values[i] + (1 - d) * weights[i]);
          BOOST_CHECK_SMALL(double{values[i]} - saved.at(name)[i], 1e-6);
        }
      }
    }
  }
  // Without train.ema, a run resumes from the weights instead of their averages. A run that was
  // trained without train.ema can be resumed with it.
  const auto weights = tensors(run, 4, "training.safetensors");
  run.config.train.ema = 0;
  {
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    trainer.restore();
    for (const NamedTensor& p : trainer.model().parameters()) {
      const auto values = p.tensor.value().values();
      BOOST_TEST(
          (weights.at("weights." + p.name) == std::vector<real>(values.begin(), values.end())));
    }
  }
  Run plain(small_run(10), folder / "plain");
  plain.train(false);
  plain.config.train.ema = 0.5;
  plain.config.train.steps = 11;
  BOOST_TEST(plain.train(true) == 0);
  // The mean begins with the weights of the checkpoint.
  const auto before = tensors(plain, 10, "model.safetensors"),
             mean = tensors(plain, 11, "model.safetensors"),
             after = tensors(plain, 11, "training.safetensors");
  for (const auto& [name, values] : mean) {
    const std::vector<real>& next = after.at("weights." + name);
    for (std::size_t i = 0; i < values.size(); ++i)
      BOOST_CHECK_SMALL(double{values[i]} - (double{before.at(name)[i]} + next[i]) / 2, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(moving_average_begins_with_the_weights_of_init_from) {
  const TempFolder folder;
  Run first(small_run(10), folder / "first");
  begin_run(first.paths(), first.config, first.data.tokenizers, first.data.sums, {});
  first.train(false);
  Config c = small_run(1);
  c.seed += 1;
  c.train.ema = 0.9;
  c.train.init_from = (folder / "first").string();
  Run second(c, folder / "second");
  Trainer trainer(second.config, second.paths(), second.data, second.run_log);
  trainer.initialise();
  trainer.train();
  const auto initial = tensors(first, 10, "model.safetensors"),
             mean = tensors(second, 1, "model.safetensors"),
             weights = tensors(second, 1, "training.safetensors");
  const double d = 2.0 / 11;  // the decay of the first update
  for (const auto& [name, values] : initial) {
    for (std::size_t i = 0; i < values.size(); ++i)
      BOOST_CHECK_SMALL(
          d * values[i] + (1 - d) * weights.at("weights." + name)[i] - mean.at(name)[i], 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(small_model_learns_with_all_regularisers, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = regularised(1200);
  c.data.synthetic.train = 2000;
  c.data.synthetic.valid = 100;
  c.data.synthetic.max_length = 4;
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->dropout = 0.1;
  c.optim.lr = 1e-2;
  c.train.batch_tokens = 200;
  c.train.save_every = c.train.validate_every = 1200;
  c.train.best = Metric::exact_match;
  Run run(c, folder / "run");
  run.train(false);
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") == "valid")
      HEED_CHECK_LEARNED("exact match", r.at("exact_match").get<double>(), >=, 0.3);
  }
}

BOOST_AUTO_TEST_SUITE_END()
