// The training loop: its output, the conditions that end it, and the choice of the best checkpoint.
#include "train/loop/trainer.h"

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <utility>

#include "autograd/io/formats/safetensors.h"
#include "nn/layers/positions.h"
#include "optim/schedule.h"
#include "tests/train/trainer_support.h"
#include "tests/train/training.h"
#include "train/run/average.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(trainer)

BOOST_AUTO_TEST_CASE(run_writes_all_records_and_files) {
  const TempFolder folder;
  Run run(small_run(), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  BOOST_TEST(run.checkpoints().steps() == (std::vector<std::int64_t>{10, 20, 30, 40}),
             boost::test_tools::per_element());
  BOOST_TEST(run.checkpoints().linked("last").value() == 40);
  BOOST_TEST(run.count("train") == 5);  // steps 7, 14, …, 35
  BOOST_TEST(run.count("valid") == 4);
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") != "train") continue;
    BOOST_TEST((r.at("loss").get<double>() > 0 && r.at("gradient_norm").get<double>() > 0));
    double squares = 0;
    for (const auto& [layer, norm] : r.at("gradient_norms").items())
      squares += norm.get<double>() * norm.get<double>();
    BOOST_TEST(std::abs(std::sqrt(squares) / r.at("gradient_norm").get<double>() - 1) < 1e-12);
    BOOST_TEST(std::abs(r.at("lr").get<double>() -
                        learning_rate(run.config.optim, r.at("step"), 40)) < 1e-18);
  }
  trainer.choose_weights();
  const std::optional<Evaluation> e = trainer.final_evaluation();
  BOOST_REQUIRE(e.has_value());
  BOOST_TEST((e->sentences == 10 && e->outputs.size() == 10u && e->has(Metric::bleu)));
  BOOST_TEST(run.count("test") == 1);
}

BOOST_AUTO_TEST_CASE(language_model_run_records_loss_by_position) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "abcabcadb\n"[i % 10];
  put(folder / "text", text);
  Config c = small_run(20);
  c.task = TaskKind::lm;
  c.data = {};
  c.data.train.text = c.data.valid.text = {(folder / "text").string()};
  c.model->context = 8;
  c.train.batch_sequences = 4;
  Run run(c, folder / "run");
  BOOST_TEST(run.train(false) == 0);
  BOOST_TEST(run.count("valid") == 2);
  // Windows of 8 tokens: the losses by position are means over positions 1, 2, 3 to 4 and 5 to 8.
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") != "valid") continue;
    const nlohmann::json& positions = r.at("loss_by_position");
    BOOST_REQUIRE(positions.size() == 4u);
    BOOST_TEST((positions[3].at("from") == 5 && positions[3].at("to") == 8));
    // 299 tokens to predict: 37 full windows and one of 3 tokens.
    const double counts[] = {38, 38, 37 * 2 + 1, 37 * 4};
    double sum = 0;
    for (std::size_t g = 0; g < 4; ++g) sum += counts[g] * positions[g].at("loss").get<double>();
    BOOST_CHECK_CLOSE(sum / 299, r.at("loss").get<double>(), 1e-3);
    // The text has 300 bytes.
    BOOST_CHECK_CLOSE(r.at("bits_per_byte").get<double>(), sum / std::log(2) / 300, 1e-3);
  }
}

/// The config of a language-model run on random pieces of 8 characters, each followed by its
/// repetition. With a context of 8 characters, the model needs a memory to predict the repetition,
/// except for its first character.
Config echo_run(const TempFolder& folder, std::int64_t memory, std::int64_t steps) {
  std::string text;
  Random random({.seed = 3, .stream = Stream::check});
  for (int pair = 0; pair < 500; ++pair) {
    std::string piece;
    for (int i = 0; i < 8; ++i) piece += static_cast<char>('a' + random.below(8));
    text += piece + piece;
  }
  put(folder / "text", text);
  Config c = small_run(steps);
  c.task = TaskKind::lm;
  c.data = {};
  c.data.train.text = c.data.valid.text = {(folder / "text").string()};
  c.model->d_model = 24;
  c.model->heads = 2;
  c.model->dropout = 0.0;
  c.model->encoder_layers = 0;
  c.model->context = 8;
  c.model->memory = memory;
  c.model->positions = PositionKind::relative_shaw;
  c.optim.lr = 1e-2;
  c.train.batch_sequences = 10;
  c.train.shards = 4;
  c.train.validate_every = c.train.save_every = 300;
  return c;
}

// A newline precedes a line. A line longer than the context is scored in windows, each of which begins
// with the last token of the previous one.
BOOST_AUTO_TEST_CASE(score_of_a_line_is_the_sum_over_its_windows) {
  const TempFolder folder;
  Config c = echo_run(folder, 0, 3);
  put(folder / "text", get(folder / "text") + "\n");
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  std::vector<std::string> lines;
  for (const std::size_t length : {0, 1, 7, 8, 9, 16, 21})
    lines.push_back(get(folder / "text").substr(3 * length, length));
  const auto scores = trainer.task().score(trainer.loaded_model(), {.target = lines});
  const auto& model = dynamic_cast<const Generative&>(trainer.model());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::int32_t> ids = run.data.tokenizers.target->encode("\n" + lines[i]);
    double expected = 0;
    for (std::size_t next = 1; next < ids.size(); ++next) {
      const std::size_t begin = (next - 1) / 8 * 8;
      const std::vector<std::int32_t> read(ids.begin() + begin, ids.begin() + next),
          offsets{0, static_cast<std::int32_t>(read.size())};
      Pass pass;
      const Array logits = model.logits({{}, {read, offsets}}, pass).value();
      const std::span<const real> z(logits.row(logits.rows() - 1), logits.cols());
      double sum = 0;
      for (const real each : z) sum += std::exp(double{each});
      expected += double{z[ids[next]]} - std::log(sum);
    }
    BOOST_TEST(scores[i].tokens == std::ssize(lines[i]));
    BOOST_TEST(std::abs(scores[i].log_prob - expected) < 1e-3, "line " << i);
  }
}

BOOST_AUTO_TEST_CASE(segment_memory_is_used_and_saved, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  const auto perplexity = [&](const Run& run) {
    double last = 0;
    for (const nlohmann::json& r : run.metrics())
      if (r.at("kind") == "valid") last = r.at("perplexity");
    return last;
  };
  Run whole(echo_run(folder, 8, 600), folder / "whole"),
      none(echo_run(folder, 0, 600), folder / "none"),
      parts(echo_run(folder, 8, 300), folder / "parts");
  none.train(false);
  parts.config.threads = 3;
  check_resumed_equals_whole(whole, parts);  // the first part ends within an epoch
  // There are 8 different characters. The minimum perplexity is 8^(15/16) = 7.03 without a memory
  // and 8^(1/2) = 2.83 with a memory.
  HEED_CHECK_LEARNED("perplexity with a memory", perplexity(whole), <, 6);
  HEED_CHECK_LEARNED("reduction of the perplexity by a memory",
                     perplexity(none) - perplexity(whole), >, 1.5);
  BOOST_TEST((whole.file(600, "memory.safetensors") == parts.file(600, "memory.safetensors")));
}

BOOST_AUTO_TEST_CASE(run_is_bitwise_independent_of_the_number_of_threads) {
  const TempFolder folder;
  Config one = small_run(), three = small_run();
  one.threads = 1;
  three.threads = 3;
  Run a(one, folder / "one"), b(three, folder / "three");
  a.train(false);
  b.train(false);
  check_same_checkpoint(a, b, 40);
  check_same_metrics(a, b);
}

BOOST_AUTO_TEST_CASE(best_checkpoint_has_the_best_value_of_the_chosen_metric) {
  const TempFolder folder;
  for (const Metric metric : {Metric::loss, Metric::token_accuracy, Metric::chrf}) {
    Config c = small_run(30);
    c.train.best = metric;
    c.train.validate_every = 4;
    c.train.save_every = 10;
    Run run(c, folder / std::to_string(static_cast<int>(metric)));
    run.train(false);
    const char* const key = metric == Metric::loss   ? "loss"
                            : metric == Metric::chrf ? "chrf"
                                                     : "token_accuracy";
    double best = 0;
    std::int64_t best_step = 0;
    for (const nlohmann::json& r : run.metrics()) {
      if (r.at("kind") != "valid") continue;
      const double value = r.at(key);
      if (best_step != 0 && (metric == Metric::loss ? value >= best : value <= best)) continue;
      best = value;
      best_step = r.at("step");
    }
    BOOST_TEST(run.checkpoints().linked("best").value() == best_step);
  }
}

BOOST_AUTO_TEST_CASE(validation_is_greedy_for_any_decode_options) {
  const TempFolder folder;
  Config greedy = small_run(20);
  greedy.train.best = Metric::chrf;
  greedy.decode.beam = 1;
  Config wide = greedy, sampled = greedy;
  wide.decode.beam = 4;
  sampled.decode.sample = true;
  Run a(greedy, folder / "greedy"), b(wide, folder / "wide"), c(sampled, folder / "sampled");
  for (Run* const run : {&a, &b, &c}) run->train(false);
  BOOST_TEST(a.count("valid") == 2);
  check_same_metrics(a, b);
  check_same_metrics(a, c);
}

BOOST_AUTO_TEST_CASE(last_step_is_validated_and_can_be_the_best,
                     *boost::unit_test::label("learns")) {
  // At step 20 a checkpoint is due; the validation is due only because the step is the last.
  const TempFolder folder;
  Config c = small_run(20);
  c.model->dropout = 0;
  c.optim.lr = 5e-4;  // small: the loss must fall steadily
  c.train.validate_every = 15;
  Run run(c, folder / "run");
  run.train(false);
  std::map<std::int64_t, double> losses;
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") == "valid") losses[r.at("step")] = r.at("loss");
  }
  BOOST_TEST(losses.size() == 2u);
  HEED_CHECK_LEARNED("reduction of the loss in the last steps", losses.at(15) - losses.at(20), >,
                     0);
  BOOST_TEST(run.checkpoints().linked("best").value() == 20);
  BOOST_TEST(run.state(20).at("best_step") == 20);
}

BOOST_AUTO_TEST_CASE(nonfinite_metric_is_never_better) {
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const double none : {infinity, -infinity, nan}) {
    for (const Metric metric : {Metric::loss, Metric::bleu}) {
      BOOST_TEST(!is_better(metric, none, std::nullopt));
      BOOST_TEST(!is_better(metric, none, 1.0));
    }
  }
  BOOST_TEST(
      (is_better(Metric::loss, 1.0, std::nullopt) && is_better(Metric::bleu, 0.0, std::nullopt)));
  BOOST_TEST((is_better(Metric::loss, 0.5, 1.0) && !is_better(Metric::loss, 1.0, 1.0)));
  BOOST_TEST((is_better(Metric::bleu, 1.5, 1.0) && !is_better(Metric::bleu, 1.0, 1.0)));
  for (const Metric metric : {Metric::loss, Metric::perplexity, Metric::token_accuracy,
                              Metric::exact_match, Metric::bleu, Metric::chrf}) {
    const bool lower = metric == Metric::loss || metric == Metric::perplexity;
    BOOST_TEST(is_better(metric, 1.0, 2.0) == lower);
    BOOST_TEST(is_better(metric, 2.0, 1.0) == !lower);
  }
}

BOOST_AUTO_TEST_CASE(early_stopping_ends_the_run) {
  const TempFolder folder;
  Config c = small_run(1000);
  c.optim.lr = 0;  // no validation is better than the first
  c.train.validate_every = 5;
  c.train.early_stopping = {Metric::loss, 3};
  Run run(c, folder / "run");
  BOOST_TEST(run.train(false) == 0);
  BOOST_TEST(run.checkpoints().linked("last").value() == 20);  // the best validation and three more
  BOOST_TEST(run.checkpoints().linked("best").value() == 5);
  BOOST_TEST(run.count("valid") == 4);
  run.train(true);  // a finished run makes no further steps
  BOOST_TEST(run.checkpoints().linked("last").value() == 20);
}

BOOST_AUTO_TEST_CASE(run_ends_after_the_given_number_of_epochs) {
  const TempFolder folder;
  Config c = small_run(0);
  c.train.epochs = 2;
  Run run(c, folder / "run");
  run.train(false);
  BatchOptions batches;
  batches.batch_tokens = c.train.batch_tokens;
  batches.seed = c.seed;
  BatchStream stream(run.data.train, batches);
  BOOST_TEST(run.checkpoints().linked("last").value() ==
             stream.batches_in(0) + stream.batches_in(1));
}

BOOST_AUTO_TEST_CASE(decay_and_warmup_follow_the_first_limit_of_the_run) {
  const TempFolder folder;
  Config c = small_run(1000);
  c.train.epochs = 2;
  c.train.log_every = 1;
  c.optim.schedule = {.name = ScheduleKind::linear, .warmup = ScheduleOptions::automatic};
  Run run(c, folder / "run");
  run.train(false);
  BatchStream stream(run.data.train, {.batch_tokens = c.train.batch_tokens, .seed = c.seed});
  const auto last = static_cast<double>(2 * stream.batches_in(0)), warmup = std::floor(last / 10);
  BOOST_TEST_REQUIRE((last >= 20 && last < 1000));
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") != "train") continue;
    const double step = r.at("step"),
                 share = step <= warmup ? step / warmup : (last - step) / (last - warmup);
    BOOST_TEST(std::abs(r.at("lr").get<double>() - std::max(share, 0.0) * c.optim.lr) < 1e-12,
               "step " << step);
  }
}

// A fraction of an epoch ends within a batch, which is the last of the run and of the schedule.
BOOST_AUTO_TEST_CASE(schedule_of_a_run_of_epochs_ends_with_its_last_step) {
  const TempFolder folder;
  Config c = small_run(0);
  c.train.epochs = 1.3;
  c.train.log_every = 1;
  c.optim.schedule = {.name = ScheduleKind::linear, .warmup = 2};
  Run run(c, folder / "run");
  run.train(false);
  BatchStream stream(run.data.train, {.batch_tokens = c.train.batch_tokens, .seed = c.seed});
  const double steps = 1.3 * static_cast<double>(stream.batches_in(0)), end = std::ceil(steps);
  BOOST_REQUIRE((end > steps && run.count("train") > 2));
  for (const nlohmann::json& r : run.metrics()) {
    if (r.at("kind") != "train") continue;
    const double t = r.at("step").get<double>(),
                 share = t < 2 ? t / 2 : std::max(1 - (t - 2) / (end - 2), 0.0);
    BOOST_CHECK_SMALL(r.at("lr").get<double>() - run.config.optim.lr * share, 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(average_is_the_mean_of_the_last_checkpoints) {
  const TempFolder folder;
  Config c = small_run();
  c.train.average = 3;
  c.train.save_every = 2;
  c.train.keep = 1;
  Run run(c, folder / "run");
  run.data.valid = {};  // without validation data, the average is always used
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  trainer.choose_weights();
  std::vector<SafetensorsFile> files;
  for (const std::int64_t step : {36, 38, 40}) {
    files.push_back(SafetensorsFile::read(run.checkpoints().folder_of(step) / "model.safetensors"));
  }
  const SafetensorsFile average =
      SafetensorsFile::read(run.paths().average() / "model.safetensors");
  BOOST_TEST(average.tensors().size() == files[0].tensors().size());
  for (const NamedTensor& p : trainer.model().parameters()) {
    const auto mean = average.find(p.name)->values<float>();
    for (std::size_t i = 0; i < mean.size(); ++i) {
      double sum = 0;
      for (const SafetensorsFile& file : files)
        sum += double{file.find(p.name)->values<float>()[i]};
      BOOST_TEST(mean[i] == static_cast<float>(sum / 3));
      BOOST_TEST(p.tensor.value().data()[i] == mean[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(average_begins_where_the_last_fifth_of_the_run_begins) {
  const TempFolder folder;
  Config c = small_run(38);  // ⌊4/5 · 38⌋ = 30
  c.train.average = 9;
  c.train.save_every = 2;
  Run run(c, folder / "run");
  run.data.valid = {};
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  BOOST_TEST((trainer.choose_weights().steps == std::vector<std::int64_t>{38, 36, 34, 32, 30}));
}

BOOST_AUTO_TEST_CASE(average_omits_a_damaged_checkpoint) {
  const TempFolder folder;
  Config c = small_run();
  c.train.average = c.train.keep = 3;
  c.train.save_every = 2;
  Run run(c, folder / "run");
  run.data.valid = {};
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  std::ofstream(run.checkpoints().folder_of(38) / "model.safetensors", std::ios::app) << "x";
  trainer.choose_weights();
  const nlohmann::json state =
      nlohmann::json::parse(std::ifstream(run.paths().average() / "state.json"));
  BOOST_TEST((state.at("state").at("mean_of_steps") == nlohmann::json{40, 36}));
  const auto values = [&](const std::filesystem::path& where, const std::string& name) {
    const SafetensorsFile file = SafetensorsFile::read(where / "model.safetensors");
    const std::span<const float> found = file.find(name)->values<float>();
    return std::vector<float>(found.begin(), found.end());
  };
  for (const NamedTensor& p : trainer.model().parameters()) {
    const std::vector<float> a = values(run.checkpoints().folder_of(36), p.name),
                             b = values(run.checkpoints().folder_of(40), p.name),
                             mean = values(run.paths().average(), p.name);
    for (std::size_t i = 0; i < mean.size(); ++i)
      BOOST_TEST(mean[i] == static_cast<float>((double{a[i]} + double{b[i]}) / 2));
  }
}

BOOST_AUTO_TEST_CASE(checkpoint_on_request_affects_neither_keep_nor_average) {
  const TempFolder folder;
  Config c = small_run(36);
  c.train.average = 3;
  c.train.save_every = 2;
  c.train.keep = 1;
  Run run(c, folder / "run");
  run.data.valid = {};
  run.train(false);
  run.config.train.steps = 40;
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.restore();
  std::raise(SIGUSR1);  // the next step is 37, at which no checkpoint is due
  BOOST_TEST(trainer.train() == 0);
  BOOST_TEST(run.checkpoints().steps() == (std::vector<std::int64_t>{36, 37, 38, 40}),
             boost::test_tools::per_element());
  for (const std::int64_t step : run.checkpoints().steps())
    BOOST_TEST(run.state(step).contains("on_request") == (step == 37));
  BOOST_TEST(trainer.choose_weights().steps == (std::vector<std::int64_t>{40, 38, 36}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(further_training_removes_an_old_average) {
  const TempFolder folder;
  Config c = small_run();
  c.train.average = 2;
  c.train.save_every = 4;
  Run run(c, folder / "run");
  run.data.valid = {};
  {
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    trainer.train();
    trainer.choose_weights();
  }
  BOOST_TEST(std::filesystem::exists(run.paths().average()));
  run.config.train.average = 1;
  run.config.train.steps = 60;
  run.train(true);
  BOOST_TEST(!std::filesystem::exists(run.paths().average()));
}

/// Trains, chooses weights, and checks that the record agrees with the choice. Returns the record.
nlohmann::json chosen(Run& run, bool restore = false) {
  run.run_log.log_to(run.paths().log());
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  if (restore) trainer.restore();
  trainer.train();
  const WeightsInfo weights = trainer.choose_weights();
  const nlohmann::json record = run.metrics().back();
  BOOST_TEST(record.at("kind") == "weights");
  BOOST_TEST(record.at("weights_name") == weights.name);
  BOOST_TEST(record.at("weights_steps") == weights.steps);
  BOOST_TEST(std::filesystem::exists(run.paths().average()) == (weights.name == "average"));
  BOOST_TEST((find_weights(run.paths(), "") == weights.folder));  // used by eval and generate
  const SafetensorsFile file = SafetensorsFile::read(weights.folder / "model.safetensors");
  for (const NamedTensor& p : trainer.model().parameters()) {
    const std::span<const float> values = file.find(p.name)->values<float>();
    BOOST_TEST(std::ranges::equal(values, p.tensor.value().values()), p.name);
  }
  return record;
}

BOOST_AUTO_TEST_CASE(average_worse_than_the_best_is_not_used, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = small_run(20);  // the loss always falls, so the average is worse than the last step
  c.model->dropout = 0;
  c.optim.lr = 5e-4;
  c.train.save_every = c.train.validate_every = 1;
  c.train.average = 5;
  Run run(c, folder / "run");
  const nlohmann::json record = chosen(run);
  BOOST_TEST(record.at("weights_name") == "best");
  HEED_CHECK_LEARNED("best step", record.at("best_step").get<double>(), >=, 20);
  BOOST_TEST(record.at("mean_of_steps") == nlohmann::json({20, 19, 18, 17, 16}));
  HEED_CHECK_LEARNED("loss of the average minus loss of the best step",
                     record.at("average").get<double>() - record.at("best").get<double>(), >, 0);
  BOOST_TEST(record.at("metric") == "loss");
}

BOOST_AUTO_TEST_CASE(average_better_than_the_best_is_used, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = small_run(196);
  c.train.save_every = 4;
  c.train.validate_every = 200;
  c.train.average = 10;
  Run run(c, folder / "run");
  const Dataset valid = std::exchange(run.data.valid, {});
  run.train(false);
  // In the last steps every target is the same, so the weights become worse.
  const std::int64_t samples = run.data.train.size();
  run.data.train.target = {};
  for (std::int64_t i = 0; i < samples; ++i)
    run.data.train.target.push(std::vector<std::int32_t>{3, 3, 3});
  run.data.valid = valid;
  run.config.train.steps = 200;
  run.config.optim.lr = training_rate(0.5);
  const nlohmann::json record = chosen(run, true);
  BOOST_TEST(record.at("weights_name") == "average");
  HEED_CHECK_LEARNED("loss of the best step minus loss of the average",
                     record.at("best").get<double>() - record.at("average").get<double>(), >, 0);
  const auto before = run.metrics();
  // A resumed run makes the same choice.
  Trainer again(run.config, run.paths(), run.data, run.run_log);
  again.restore();
  again.train();
  BOOST_TEST(again.choose_weights().name == "average");
  BOOST_TEST((run.metrics() == before));
}

BOOST_AUTO_TEST_CASE(checkpoints_far_apart_are_not_averaged) {
  const TempFolder folder;
  Config c = small_run();  // 40 steps, a checkpoint every 10
  c.train.average = 3;
  Run run(c, folder / "run");
  BOOST_TEST(chosen(run).at("weights_name") == "best");
  BOOST_TEST(get(run.paths().log())
                 .find("train.average=3, but the last fifth of the run (from step "
                       "32) has 1 intact checkpoint (train.save_every=10): no "
                       "mean is computed") != std::string::npos);
  Run unjudged(c, folder / "unjudged");
  unjudged.data.valid = {};
  BOOST_TEST(chosen(unjudged).at("weights_name") == "last");
}

BOOST_AUTO_TEST_CASE(run_stopped_before_the_first_step_has_no_best_checkpoint) {
  const TempFolder folder;
  Run run(small_run(), folder / "run");
  run.data.valid = {};
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  std::raise(SIGTERM);
  BOOST_TEST(trainer.train() == SIGTERM);
  BOOST_TEST(run.checkpoints().linked("last").value() == 0);
  BOOST_TEST(!run.checkpoints().linked("best").has_value());
}

BOOST_AUTO_TEST_CASE(diverging_run_keeps_its_finite_checkpoints) {
  const TempFolder folder;
  Config c = small_run();
  c.optim.name = OptimizerKind::sgd;
  c.optim.clip_norm = 0;
  c.optim.schedule.name = ScheduleKind::constant;
  c.optim.schedule.warmup = 0;
  c.optim.lr = 1e-3;
  c.train.steps = 10;
  Run run(c, folder / "run");
  run.train(false);
  run.config.train.steps = 40;
  run.config.optim.lr = 1e30;
  const std::string message = error_of(Exit::non_finite, [&] { run.train(true); });
  BOOST_TEST(contains(message, "step 12: the loss is"), message);
  // Step 11 was finite. The earlier checkpoints remain.
  BOOST_TEST((run.checkpoints().steps() == std::vector<std::int64_t>{10, 11}));
  BOOST_TEST(run.checkpoints().linked("last").value() == 11);
  BOOST_TEST(run.checkpoints().linked("best").value() == 10);
}

BOOST_AUTO_TEST_SUITE_END()
