// Tasks: files, batches, and the evaluation of a trained model.
#include "nn/layers/positions.h"
#include "train/tasks/task.h"

#include <nlohmann/json.hpp>
#include <set>

#include "autograd/io/utf8.h"
#include "nn/weights.h"
#include "tests/train/trainer_support.h"
#include "train/decode/model_input.h"
#include "train/tasks/model.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(tasks)

namespace {

/// The config of a short run: a tiny model is trained to label brackets with their depth.
Config tag_run(std::int64_t steps = 40) {
  Config c = small_run(steps);
  c.task = TaskKind::tag;
  c.data.synthetic.name = SyntheticKind::brackets;
  c.data.synthetic.train = 600;
  c.data.synthetic.min_length = 2;
  c.data.synthetic.max_length = 3;
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.shared = false;
  c.model->dropout = 0;
  c.model->decoder_layers = 0;
  return c;
}

Config batch_norm_run(std::int64_t steps) {
  Config c = tag_run(steps);
  c.model->norm_kind = NormKind::batch;
  return c;
}

std::vector<real> values_of(const Model& model) {
  std::vector<real> all;
  for (const NamedTensor& t : model.state()) {
    const auto values = t.tensor.value().values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

Split tagged(std::vector<std::string> source, std::vector<std::string> target) {
  return {.source = std::move(source), .target = std::move(target), .text = {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_task_has_a_unique_name_and_the_metric_loss) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < task_table().size(); ++i) {
    const TaskInfo& row = task_table()[i];
    names.emplace(row.name);
    Config c;
    c.task = static_cast<TaskKind>(i);
    BOOST_TEST(make_task(c)->info().name == row.name);
    BOOST_TEST(row.has(Metric::loss));
  }
  BOOST_TEST(names.size() == task_table().size());
  BOOST_TEST((info_of(TaskKind::lm).name == "lm" && info_of(TaskKind::tag).name == "tag"));
}

BOOST_AUTO_TEST_CASE(evaluation_sets_every_metric_of_its_task) {
  const TempFolder folder;
  Config text = small_run();
  text.task = TaskKind::lm;
  text.data = {};
  put(folder / "text", "some text to read\nand some more of it\n");
  text.data.train.text = text.data.valid.text = {(folder / "text").string()};
  text.model->context = 8;
  for (const Config& c : {small_run(), tag_run(), text}) {
    Run run(c, folder / std::string(info_of(c.task).name));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
    for (const Metric metric : info_of(c.task).metrics)
      BOOST_TEST(e.has(metric), info_of(c.task).name << " does not set " << info_of(metric).name);
  }
}

BOOST_AUTO_TEST_CASE(tag_batch_has_a_label_for_each_source_row) {
  const Config c = tag_run();
  const ExperimentData data = load_data(c);
  BOOST_TEST(data.train.size() == 600);
  BatchStream stream(data.train, batch_options(c));
  std::multiset<std::int64_t> seen;
  while (stream.position().epoch == 0) {
    const Batch batch = stream.next();
    BOOST_TEST((batch.target == Side{}));
    BOOST_TEST(batch.source.rows() <= c.train.batch_tokens);
    BOOST_TEST(static_cast<std::int64_t>(batch.labels.size()) == batch.source.rows());
    for (std::int64_t i = 0; i < batch.sequences(); ++i) {
      const std::int64_t sample = batch.samples[static_cast<std::size_t>(i)];
      seen.insert(sample);
      BOOST_TEST(std::ranges::equal(batch.source.part(i, i + 1).ids, data.train.source[sample]));
      const auto at = batch.labels.begin() + batch.source.offsets[static_cast<std::size_t>(i)];
      const auto labels = data.train.target[sample];
      BOOST_TEST(std::equal(labels.begin(), labels.end(), at));
    }
  }
  BOOST_TEST(seen.size() == 600u);
  BOOST_TEST(std::set(seen.begin(), seen.end()).size() == 600u);
}

BOOST_AUTO_TEST_CASE(tagger_learns_the_depth_of_brackets, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = tag_run(800);
  c.data.synthetic.train = 3000;
  c.data.synthetic.max_length = 4;
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->encoder_layers = 2;
  c.optim.lr = 1e-2;
  c.train.batch_tokens = 400;
  c.train.label_smoothing = 0;
  c.train.validate_every = c.train.save_every = 200;
  c.train.best = Metric::exact_match;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  trainer.choose_weights();
  const Evaluation e = trainer.final_evaluation().value();
  HEED_CHECK_LEARNED("token accuracy", e.value(Metric::token_accuracy), >, 0.9);
  HEED_CHECK_LEARNED("exact match", e.value(Metric::exact_match), >, 0.6);
  BOOST_TEST(e.sentences == 10);
  const Task& task = trainer.task();
  // Accuracy and exact match agree with the outputs, and generation returns the same labels.
  std::int64_t exact = 0, right = 0, labels = 0;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    const std::string &made = e.outputs[i], &expected = run.data.test.target_lines[i];
    exact += made == expected;
    BOOST_REQUIRE(made.size() == expected.size());
    for (std::size_t at = 0; at < made.size(); at += 2) {
      right += made[at] == expected[at];
      ++labels;
    }
  }
  BOOST_TEST(e.value(Metric::exact_match) == static_cast<double>(exact) / 10);
  BOOST_TEST(e.value(Metric::token_accuracy) ==
             static_cast<double>(right) / static_cast<double>(labels));
  BOOST_TEST(
      (task.make_generator(trainer.loaded_model(), 1)->lines(run.data.test.source_lines, 0) ==
       e.outputs));
  BOOST_TEST(task.examples(trainer.loaded_model(), run.data.test, e).size() == 10u);
  BOOST_TEST(e.json().contains("exact_match"));
  BOOST_TEST(!e.json().contains("bleu"));
  BOOST_TEST(run.count("valid") == 4);
}

BOOST_AUTO_TEST_CASE(batch_norm_in_training_uses_the_statistics_of_all_shards) {
  const TempFolder folder;
  std::vector<std::vector<real>> trained;
  for (const std::int64_t shards : {1, 3, 7}) {
    Config c = batch_norm_run(2);
    c.model->dropout = 0.0;  // dropout masks depend on the shards
    c.optim.name = OptimizerKind::sgd;
    c.train.shards = shards;
    Run run(c, folder / std::to_string(shards));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    trainer.train();
    trained.push_back(values_of(trainer.model()));
  }
  for (std::size_t i = 0; i < trained[0].size(); ++i) {
    for (const std::size_t k : {1u, 2u})
      BOOST_CHECK_SMALL(double{trained[k][i]} - trained[0][i], 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(batch_norm_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config threads = batch_norm_run(40), recomputed = batch_norm_run(20);
  threads.threads = 3;
  recomputed.train.recompute = true;  // recomputation must not update the running means again
  Run whole(threads, folder / "whole"), parts(recomputed, folder / "parts");
  check_resumed_equals_whole(whole, parts);
  const SafetensorsFile file =
      SafetensorsFile::read(whole.checkpoints().folder_of(40) / "model.safetensors");
  const TensorView* const mean = file.find("encoder.layers.0.norm1.running_mean");
  BOOST_REQUIRE(mean != nullptr);
  std::vector<real> values(static_cast<std::size_t>(mean->shape[0]));
  copy_values(*mean, values);
  BOOST_TEST(std::ranges::any_of(values, [](real v) { return std::abs(v) > 0.01; }));
}

BOOST_AUTO_TEST_CASE(tagger_with_batch_norm_learns, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = batch_norm_run(500);
  c.data.synthetic.train = 3000;
  c.data.synthetic.test = 100;
  c.data.synthetic.max_length = 4;
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->encoder_layers = 2;
  c.optim.lr = 1e-2;
  c.train.batch_tokens = 400;
  c.train.validate_every = c.train.save_every = 500;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  HEED_CHECK_LEARNED("token accuracy", trainer.final_evaluation()->value(Metric::token_accuracy), >,
                     0.7);
}

// The other shards must not wait for a failed shard.
BOOST_AUTO_TEST_CASE(error_in_a_shard_with_batch_norm_ends_the_step) {
  const TempFolder folder;
  const Config c = batch_norm_run(1);
  Run run(c, folder / "run");
  const std::unique_ptr<Model> model = build_model(c, sizes_of(run.data.tokenizers));
  Optimizer optimizer(c.optim, model->parameters());
  Team team(1);
  TrainStep step(*model, optimizer, team, step_options(c));
  BatchStream stream(run.data.train, batch_options(c));
  std::vector<Batch> shards = shard(stream.next(), 3);
  shards[1].labels.back() = 99;  // no such label
  BOOST_CHECK_EXCEPTION(step.run(shards, 1, 1e-3), Error, [](const Error& e) {
    return std::string(e.what()).find("got 99 at row") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(special_piece_is_never_predicted_as_a_label) {
  const TempFolder folder;
  Config c = tag_run(1);
  c.tokenizer.specials = {"<pad>", "<mask>"};
  c.data.synthetic.max_length = 4;
  for (const std::uint64_t seed : {1, 2, 3}) {  // an untrained model could predict any id
    c.seed = seed;
    Run run(c, folder / std::to_string(seed));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    const std::vector<std::string>& source = run.data.test.source_lines;
    const auto labels = trainer.task().make_generator(trainer.loaded_model(), 1)->lines(source, 0);
    for (std::size_t i = 0; i < source.size(); ++i)
      BOOST_TEST(std::ranges::count(labels[i], ' ') == std::ranges::count(source[i], ' '));
  }
}

BOOST_AUTO_TEST_CASE(resumed_tag_run_equals_an_uninterrupted_run) {
  const TempFolder folder;
  Run whole(tag_run(40), folder / "whole"), parts(tag_run(20), folder / "parts");
  check_resumed_equals_whole(whole, parts);
}

BOOST_AUTO_TEST_CASE(unequal_numbers_of_tokens_and_labels_are_refused) {
  const Config c = tag_run();
  const std::unique_ptr<Task> task = make_task(c);
  const Split good = tagged({"( )", "( ( ) )"}, {"1 1", "1 2 2 1"});
  const Tokenizers tokenizers = make_tokenizers(c.tokenizer, good, 1);
  BOOST_TEST(task->encode(good, tokenizers, true).size() == 2);
  const Split uneven = tagged({"", "( )", "( ( ) )"}, {"", "1 1", "1 2 1"});
  HEED_CHECK_ERROR(
      Exit::bad_input,
      "data.train: line 3: the numbers of tokens (4) and labels (3) differ: each token requires "
      "one label",
      task->encode(uneven, tokenizers, true));
  const Dataset data = task->encode(uneven, tokenizers, false);
  HEED_CHECK_ERROR(Exit::bad_input,
                   "data.valid: line 3: the numbers of tokens (4) and labels (3) differ",
                   task->check_evaluable(data, "data.valid"));
  Config learned = c;
  learned.model->positions = PositionKind::learned;
  learned.model->max_positions = 3;
  HEED_CHECK_ERROR(
      Exit::bad_input,
      "data.test: line 2 has 4 tokens; the model accepts a maximum of 3 (model.max_positions)",
      make_task(learned)->check_evaluable(task->encode(good, tokenizers, false), "data.test"));
}

BOOST_AUTO_TEST_CASE(files_that_a_task_does_not_read_are_refused) {
  Config c = tag_run();
  const FilesOptions pairs{{"a"}, {"b"}, {}}, text{{}, {}, {"c"}}, half{{"a"}, {}, {}},
      twice{{"-"}, {"-"}, {}};
  const auto refused = [&](const FilesOptions& files, const char* why) {
    HEED_CHECK_ERROR(Exit::usage, why, make_task(c)->read_given(files));
  };
  for (const TaskKind kind : {TaskKind::tag, TaskKind::seq2seq}) {
    c.task = kind;
    refused(text, "--text is for tasks that read text");
    refused(half, "--source and --target must be used together");
    refused(twice, "only one file can be standard input");
  }
  c.task = TaskKind::lm;
  refused(pairs, "--text is missing: this task is evaluated on a text");
  refused({{"a"}, {}, {"c"}}, "--source and --target are for tasks that read pairs of lines");
}

BOOST_AUTO_TEST_CASE(random_batch_has_the_sides_that_the_task_requires) {
  for (std::size_t i = 0; i < task_table().size(); ++i) {
    Config c;
    c.task = static_cast<TaskKind>(i);
    const std::unique_ptr<Task> task = make_task(c);
    std::int64_t max_size = 0;
    const Batch batch = task->random_batch(3, 4, 5, {10, 6, false}, [&](std::int64_t size) {
      max_size = std::max(max_size, size);
      return static_cast<std::int32_t>(size - 1);
    });
    const Architecture architecture = task->info().architecture;
    BOOST_TEST(batch.sequences() == 3);
    BOOST_TEST(batch.source.rows() == (has_encoder(architecture) ? 12 : 0));
    BOOST_TEST(batch.target.rows() == (has_decoder(architecture) ? 15 : 0));
    BOOST_TEST(static_cast<std::int64_t>(batch.labels.size()) == batch.labelled().rows());
    const std::int64_t labels = architecture == Architecture::encoder_of_sequences ? 3
                                : architecture == Architecture::encoder_of_tokens
                                    ? 2  // in rows 0 and 7
                                : has_decoder(architecture) ? 15
                                                            : 12;
    BOOST_TEST(batch.label_count() == labels);
    BOOST_TEST(std::ranges::count(batch.labels, 5) == labels);
    BOOST_TEST(batch.samples.size() == 3u);
    BOOST_TEST(max_size == (has_encoder(architecture) ? 10 : 6));
  }
}

BOOST_AUTO_TEST_CASE(evaluation_prints_and_records_metrics_by_name) {
  Evaluation e;
  e.set(Metric::loss, 0.25);
  e.set(Metric::perplexity, 1.284);
  e.set(Metric::token_accuracy, 0.5);
  e.set(Metric::bleu, 12.345);
  e.notes["beam"] = 3;
  BOOST_TEST(e.text() == "loss 0.2500  perplexity 1.284  token accuracy 50.00 %  BLEU 12.35");
  BOOST_TEST((e.json() == nlohmann::json{{"sentences", 0},
                                         {"tokens", 0},
                                         {"loss", 0.25},
                                         {"perplexity", 1.284},
                                         {"token_accuracy", 0.5},
                                         {"bleu", 12.345},
                                         {"beam", 3}}));
  BOOST_TEST(std::isnan(e.value(Metric::chrf)));
  BOOST_TEST((e.has(Metric::bleu) && !e.has(Metric::chrf)));
}

BOOST_AUTO_TEST_CASE(excerpts_are_single_lines_of_limited_length) {
  BOOST_TEST(excerpt("a b") == "a b");
  BOOST_TEST(excerpt("ab\ncd") == "ab cd");
  BOOST_TEST(excerpt("äöü", 3) == "äöü");
  BOOST_TEST(excerpt("äöüß", 3) == "äöü…");
  const std::string garbage = excerpt(std::string(1000, '\xff'));
  BOOST_TEST(invalid_utf8(garbage) == std::string::npos);
  BOOST_TEST(garbage.size() <= 3 * 100 + 3);
}

BOOST_AUTO_TEST_SUITE_END()
