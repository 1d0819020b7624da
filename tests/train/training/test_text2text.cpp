// Several tasks in one model, and span corruption.
#include <fmt/format.h>

#include <cmath>

#include "tests/train/trainer_support.h"
#include "train/tasks/model.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(text2text)

namespace {

Config mixture_run(std::int64_t steps) {
  Config c = small_run(steps);
  c.task = TaskKind::text2text;
  SyntheticOptions& data = c.data.synthetic;
  data.name = SyntheticKind::mixture;
  data.of = {"copy", "reverse"};
  data.train = 3000;
  data.valid = 60;
  data.test = 60;
  data.max_length = 3;
  data.symbols = 12;
  c.model->dropout = 0;
  c.model->d_model = 32;
  c.model->heads = 4;
  c.model->d_ff = 64;
  c.optim.lr = 5e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = 20, .steps = steps};
  c.train.batch_tokens = 400;
  c.train.validate_every = c.train.save_every = std::max<std::int64_t>(steps / 2, 1);
  c.decode.max_length = 12;
  return c;
}

/// Writes the data of a run with span corruption and returns its config. Each line contains
/// consecutive words, so that the neighbours of a hidden span determine its words.
Config denoise_run(const TempFolder& folder, std::int64_t steps) {
  Random random({.seed = 4, .stream = Stream::check, .index = 3});
  for (const auto& [name, n] : {std::pair("train", 1500), std::pair("valid", 100)}) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      const std::uint32_t first = random.below(8);
      for (std::uint32_t k = 0; k < 8; ++k) text += fmt::format("w{} ", (first + k) % 8);
      text.back() = '\n';
    }
    put(folder / name, text);
  }
  Config c = mixture_run(steps);
  c.task = TaskKind::denoise;
  c.data = {};
  c.data.train.text = {(folder / "train").string()};
  c.data.valid.text = {(folder / "valid").string()};
  c.data.spans.rate = 0.5;
  c.data.spans.length = 2;
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.specials = span_mark_names();
  return c;
}

}  // namespace

// The inputs of the two tasks differ only in their prefix.
BOOST_AUTO_TEST_CASE(model_learns_two_tasks_with_prefixes, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(mixture_run(900), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.test, {});
  for (const char* task : {"copy", "reverse"}) {
    const nlohmann::json part = e.json()["parts"][task];
    BOOST_TEST(part["sentences"] == 60);
    HEED_CHECK_LEARNED(std::string(task) + ": exact match", part["exact_match"].get<double>(), >=,
                       0.8);
  }
  BOOST_TEST(e.details.back().starts_with("reverse: exact match "));
}

BOOST_AUTO_TEST_CASE(mixture_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config c = mixture_run(40);
  c.model->dropout = 0.1;
  c.data.mixture.temperature = 2;
  check_repeats_bits(c, folder / "run");
}

BOOST_AUTO_TEST_CASE(hidden_spans_are_predicted_from_their_neighbours,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(denoise_run(folder, 400), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  // A word chosen at random is correct with probability 0.125.
  HEED_CHECK_LEARNED("token accuracy", e.value(Metric::token_accuracy), >, 0.98);
  const auto generator = trainer.task().make_generator(trainer.loaded_model(), 1);
  const std::vector<std::string> filled =
      generator->lines({"w1 w2 <extra_id_0> w5 w6 <extra_id_1>", ""}, 0);
  HEED_CHECK_LEARNED("correct outputs", filled[0] == "<extra_id_0> w3 w4 <extra_id_1> w7 w0", >=,
                     1);
  BOOST_TEST(filled[1].empty());
  for (const std::string& line : trainer.task().examples(trainer.loaded_model(), run.data.valid, e))
    BOOST_TEST((line.find("<extra_id_0>") < line.find("  ->  <extra_id_0>")), line);
}

BOOST_AUTO_TEST_CASE(denoise_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config c = denoise_run(folder, 40);
  c.model->dropout = 0.1;
  check_repeats_bits(c, folder / "run");
}

// With a rate of 1/2 and spans of 2 tokens, a line has a span for every 4 of its tokens. Evaluation
// also reads lines longer than data.max_length.
BOOST_AUTO_TEST_CASE(line_with_more_spans_than_sentinels_is_refused) {
  const TempFolder folder;
  Config c = denoise_run(folder, 1);
  const auto write = [&](int words) {
    std::string text = "w1 w2 w3\n";
    for (int i = 0; i < words; ++i) text += fmt::format("w{} ", i % 8);
    put(folder / "valid", text + "\nw4 w5\n");
  };
  write(400);
  const ExperimentData data = load_data(c);
  BOOST_TEST(std::ranges::max(make_batch(data.valid, {1}).source.ids) <
             data.tokenizers.source->size());
  write(404);
  HEED_CHECK_ERROR(Exit::bad_input,
                   "data.valid: a line of 404 tokens has 101 hidden spans, but there are only 100 "
                   "sentinels <extra_id_...> (data.spans)",
                   load_data(c));
}

BOOST_AUTO_TEST_CASE(tokenizer_without_span_marks_is_refused) {
  const TempFolder folder;
  Config c = denoise_run(folder, 1);
  c.tokenizer.specials.erase(c.tokenizer.specials.begin() + 5);
  HEED_CHECK_ERROR(Exit::usage, "the tokenizer lacks <extra_id_5>", load_data(c));
}

BOOST_AUTO_TEST_SUITE_END()
