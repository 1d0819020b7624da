// Tasks with only an encoder: labels of lines and frames, and masked tokens. Runs that start with
// the weights of another run or have frozen parameters.
#include <fmt/format.h>

#include <cmath>

#include "nn/layers/positions.h"
#include "nn/models/classifier.h"
#include "tests/data/files.h"
#include "tests/train/trainer_support.h"
#include "train/loop/transfer.h"
#include "train/run/run_record.h"
#include "train/tasks/model.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(labels)

namespace {

/// Writes n lines of two texts separated by a tab, and their labels: "yes" if both texts have the
/// same first word, otherwise "no".
void write_pairs(const TempFolder& folder, const std::string& name, std::int64_t n,
                 std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 3});
  const std::string words[] = {"red", "green", "blue", "black"};
  std::string source, target;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::size_t a = random.below(4), b = random.below(2) == 0 ? a : random.below(4);
    source += fmt::format("{} {}\t{} {}\n", words[a], words[random.below(4)], words[b],
                          words[random.below(4)]);
    target += a == b ? "yes\n" : "no\n";
  }
  put(folder / (name + ".src"), source);
  put(folder / (name + ".tgt"), target);
}

Config classify_run(const TempFolder& folder, std::int64_t steps) {
  write_pairs(folder, "train", 2000, 1);
  write_pairs(folder, "valid", 200, 2);
  Config c = small_run(steps);
  c.task = TaskKind::classify;
  c.data = {};
  c.data.train = {{(folder / "train.src").string()}, {(folder / "train.tgt").string()}, {}};
  c.data.valid = {{(folder / "valid.src").string()}, {(folder / "valid.tgt").string()}, {}};
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.shared = false;
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->encoder_layers = 2;
  c.model->segments = 2;
  c.model->dropout = 0;
  c.optim.lr = 5e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = steps / 10, .steps = steps};
  c.decode = {};
  c.train.batch_tokens = 400;
  c.train.validate_every = c.train.save_every = std::max<std::int64_t>(steps / 2, 1);
  return c;
}

/// The config of a masked-language-model run on word pairs such as a7 b7. Each word of a pair
/// determines the other.
Config mlm_run(const TempFolder& folder, std::int64_t steps) {
  Random random({.seed = 4, .stream = Stream::check, .index = 3});
  for (const auto& [name, n] : {std::pair("mlm.train", 2000), std::pair("mlm.valid", 100)}) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < 5; ++k) {
        const std::uint32_t w = random.below(12);
        text += fmt::format("a{} b{}{}", w, w, k == 4 ? "\n" : " ");
      }
    }
    put(folder / name, text);
  }
  Config c = small_run(steps);
  c.task = TaskKind::mlm;
  c.data = {};
  c.data.train.text = {(folder / "mlm.train").string()};
  c.data.valid.text = {(folder / "mlm.valid").string()};
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.specials = {"<mask>"};
  c.data.max_length = 30;
  c.data.mask.rate = 0.1;  // masks one of ten words
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->encoder_layers = 2;
  c.model->positions = PositionKind::learned;
  c.model->max_positions = 32;
  c.model->norm = NormPlace::post;
  c.model->dropout = 0;
  c.optim.lr = 5e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = steps / 10, .steps = steps};
  c.decode = {};
  c.train.batch_tokens = 400;
  c.train.validate_every = c.train.save_every = std::max<std::int64_t>(steps / 2, 1);
  return c;
}

const NamedTensor& named(const Parameters& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &NamedTensor::name);
  BOOST_REQUIRE(found != all.end());
  return *found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(classifier_learns_to_compare_two_texts, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(classify_run(folder, 800), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("accuracy", e.value(Metric::accuracy), >, 0.95);
  HEED_CHECK_LEARNED("F1", e.value(Metric::f1), >, 0.95);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    right += e.outputs[i] == run.data.valid.target_lines[i];
  BOOST_TEST(e.value(Metric::accuracy) == static_cast<double>(right) / 200);
  HEED_CHECK_LEARNED("number of lines correctly labelled yes",
                     e.json()["confusion"]["yes"]["yes"].get<int>(), >, 100);
  const std::vector<std::string> labels =
      trainer.task().make_generator(trainer.loaded_model(), 1)->lines({"red red\tred blue"}, 0);
  HEED_CHECK_LEARNED("correct outputs", labels == std::vector<std::string>{"yes"}, >=, 1);
}

BOOST_AUTO_TEST_CASE(classifier_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config c = classify_run(folder, 40);
  c.model->dropout = 0.2;
  check_repeats_bits(c, folder / "run");
}

BOOST_AUTO_TEST_CASE(max_length_limits_the_two_texts_of_a_line_together) {
  const TempFolder folder;
  Config c = classify_run(folder, 1);
  c.data.max_length = 4;
  const Run run(c, folder / "run");
  const Split lines{.source = {"red blue\tred green", "red red blue\tred green", "red", "\tred",
                               "\t", "blue blue\tred red red"},
                    .target = {"yes", "no", "no", "yes", "no", "no"}};
  const auto task = make_task(c);
  const Dataset train = task->encode(lines, run.data.tokenizers, true),
                all = task->encode(lines, run.data.tokenizers, false);
  BOOST_TEST((train.size() == 3 && train.skipped_long == 2 && train.skipped_empty == 1));
  BOOST_TEST(all.size() == 6);
  const auto ids = [](const Dataset& data, std::int64_t i) {
    return std::vector<std::int32_t>(data.source[i].begin(), data.source[i].end());
  };
  const std::int32_t red = run.data.tokenizers.source->encode("red")[0],
                     blue = run.data.tokenizers.source->encode("blue")[0];
  BOOST_TEST(ids(all, 5) == (std::vector<std::int32_t>{1, blue, blue, 2, red, red, red, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(ids(train, 1) == (std::vector<std::int32_t>{1, red, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(line_with_two_labels_is_refused) {
  const TempFolder folder;
  const Config c = classify_run(folder, 1);
  std::string labels = "yes\nno maybe\n";
  for (int i = 0; i < 198; ++i) labels += "no\n";
  put(folder / "valid.tgt", labels);
  HEED_CHECK_ERROR(Exit::bad_input,
                   (folder / "valid.tgt").string() +
                       ":2: 2 labels: each line of the target, or folder of a class, must be one "
                       "label, without spaces; "
                       "got \"no maybe\"",
                   load_data(c));
}

// After one step, the model gives most lines the same label.
BOOST_AUTO_TEST_CASE(rows_of_the_confusion_are_true_labels) {
  const TempFolder folder;
  Run run(classify_run(folder, 1), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  std::map<std::string, std::map<std::string, int>> expected;
  std::map<std::string, int> occurrences;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    ++expected[run.data.valid.target_lines[i]][e.outputs[i]];
    ++occurrences[run.data.valid.target_lines[i]];
  }
  BOOST_TEST(e.json()["confusion"] == nlohmann::json(expected));
  for (const auto& [label, n] : occurrences)
    BOOST_TEST(e.json()["classes"][label]["occurrences"] == n);
}

BOOST_AUTO_TEST_CASE(mask_is_never_filled_with_a_special_piece) {
  const TempFolder folder;
  Config c = mlm_run(folder, 1);
  c.model->tie_embeddings = false;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  Tensor bias = named(trainer.model().parameters(), "output.bias").tensor;
  for (std::int32_t id = 0; id < run.data.tokenizers.source->first_ordinary(); ++id)
    bias.mutable_value().data()[id] = 1e6F;
  const std::string filled =
      trainer.task().make_generator(trainer.loaded_model(), 1)->lines({"a1 <mask> a3"}, 0)[0];
  BOOST_TEST((filled.starts_with("a1 ") && filled.ends_with(" a3") && filled.size() > 6u), filled);
}

BOOST_AUTO_TEST_CASE(score_of_masked_language_model_hides_each_token_in_turn) {
  const TempFolder folder;
  Run run(mlm_run(folder, 3), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const Tokenizer& tokenizer = *run.data.tokenizers.source;
  const auto& model = dynamic_cast<const Classifier&>(trainer.model());
  const std::vector<std::string> lines{"a1 b1 a7", "", "b3"};
  const std::vector<LineScore> scores =
      trainer.task().score(trainer.loaded_model(), {.target = lines});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::int32_t> ids = tokenizer.encode(lines[i]);
    double expected = 0;
    for (std::size_t hidden = 0; hidden < ids.size(); ++hidden) {
      std::vector<std::int32_t> rows{Tokenizer::bos};
      rows.insert(rows.end(), ids.begin(), ids.end());
      rows.push_back(Tokenizer::eos);
      rows[hidden + 1] = tokenizer.special("<mask>").value();
      const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(rows.size())};
      Pass pass;
      const Array logits = model.logits({{rows, offsets}, {}, {}}, pass).value();
      const std::span<const real> z(logits.row(hidden + 1), logits.cols());
      double sum = 0;
      for (const real each : z) sum += std::exp(static_cast<double>(each));
      expected += static_cast<double>(z[ids[hidden]]) - std::log(sum);
    }
    BOOST_TEST(scores[i].tokens == std::ssize(ids));
    BOOST_TEST(std::abs(scores[i].log_prob - expected) < 1e-4, lines[i]);
  }
}

// The first row of a pair is labelled <s> if its second line follows the first, otherwise </s>. A model that always
// predicts one of them is right for these pairs, whatever tokens are hidden in the other rows.
BOOST_AUTO_TEST_CASE(accuracy_of_next_sentences_counts_the_first_row_of_each_pair) {
  const TempFolder folder;
  Config c = mlm_run(folder, 1);
  c.model->segments = 2;
  c.model->output_bias = OutputBias::yes;
  c.data.mask.next_sentence = true;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  Tensor bias = named(trainer.model().parameters(), "output.bias").tensor;
  const Dataset& valid = run.data.valid;
  for (const std::int32_t predicted : {Tokenizer::bos, Tokenizer::eos}) {
    for (real& value : bias.mutable_value().values()) value = 0;
    bias.mutable_value().data()[predicted] = 1e6F;
    double right = 0;
    for (std::int64_t i = 0; i < valid.size(); ++i)
      right += make_batch(valid, {i}).labels.front() == predicted ? 1 : 0;
    BOOST_TEST((right > 20 && right < 80));
    const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), valid, {});
    BOOST_TEST(e.notes.at("next_sentence_accuracy") == right / static_cast<double>(valid.size()));
    BOOST_TEST(e.details.at(0) == fmt::format("next sentence: {:.2f} % correct", right));
  }
}

// An empty line ends a document, and so does a line that is skipped because of its length.
BOOST_AUTO_TEST_CASE(lines_follow_within_a_document_only) {
  const TempFolder folder;
  Config c = mlm_run(folder, 1);
  const Run run(c, folder / "run");
  c.data.max_length = 3;
  const Split lines{
      .source = {"a1", "b1 a2 b2", "", "a3", "a1 a2 a3 a4", "a4", "b4", "", "", "a5"}};
  for (const bool training : {true, false}) {
    const Dataset data = make_task(c)->encode(lines, run.data.tokenizers, training);
    const std::vector<bool> follows = data.masking->followed;
    const std::vector<bool> expected =
        training ? std::vector<bool>{true, false, false, true, false, false}
                 : std::vector<bool>{true, false, true, true, true, false, false};
    BOOST_TEST(follows == expected, boost::test_tools::per_element());
    BOOST_TEST(data.skipped_long == (training ? 1 : 0));
    BOOST_TEST(data.size() == std::ssize(expected));
  }
}

BOOST_AUTO_TEST_CASE(masked_language_model_learns_word_pairs, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(mlm_run(folder, 800), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("token accuracy", e.value(Metric::token_accuracy), >, 0.95);
  BOOST_TEST(e.value(Metric::perplexity) == std::exp(e.value(Metric::loss)));
  const std::vector<std::string> filled = trainer.task()
                                              .make_generator(trainer.loaded_model(), 1)
                                              ->lines({"a1 b1 a7 <mask> a3 b3", "no mask here"}, 0);
  HEED_CHECK_LEARNED("correct outputs", filled[0] == "a1 b1 a7 b7 a3 b3", >=, 1);
  BOOST_TEST(filled[1] == "no mask here");
}

BOOST_AUTO_TEST_CASE(masked_language_model_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config c = mlm_run(folder, 40);
  c.model->dropout = 0.2;
  c.model->segments = 2;
  c.data.mask.next_sentence = true;
  check_repeats_bits(c, folder / "run");
}

BOOST_AUTO_TEST_CASE(model_starts_with_the_weights_of_init_from) {
  const TempFolder folder;
  Run first(mlm_run(folder, 4), folder / "first");
  begin_run(first.paths(), first.config, first.data.tokenizers, first.data.sums, {});
  first.train(false);
  Config c = classify_run(folder, 4);
  c.model = first.config.model;
  c.model->segments = 2;
  c.tokenizer.specials = {"<mask>"};
  c.train.init_from = (folder / "first").string();
  Run second(c, folder / "second");
  BOOST_TEST(second.data.tokenizers.source->size() == first.data.tokenizers.source->size());
  const auto model = build_model(c, sizes_of(second.data.tokenizers));
  const TransferReport weights = transfer_weights(c.train.init_from, *model);
  BOOST_TEST((weights.initialised ==
              std::vector<std::string>{"segments.weight", "output.weight", "output.bias"}));
  // The output of the masked language model is tied to its embedding.
  BOOST_TEST(weights.unused.empty());
  BOOST_TEST(weights.text().size() == 2u);
  BOOST_TEST(
      weights.text()[0] ==
      "model.init_from: transferred: embedding.weight, positions.weight, encoder.layers.0.*, "
      "encoder.layers.1.*, encoder.norm.weight, encoder.norm.bias");
  Trainer before(first.config, first.paths(), first.data, first.run_log);
  before.restore();
  const auto bits = [](const Tensor& t) {
    const auto values = t.value().values();
    return std::vector<float>(values.begin(), values.end());
  };
  for (const std::string& name : weights.transferred)
    BOOST_TEST((bits(named(model->parameters(), name).tensor) ==
                bits(named(before.model().parameters(), name).tensor)),
               name);
}

BOOST_AUTO_TEST_CASE(incompatible_weights_of_init_from_are_refused) {
  const TempFolder folder;
  Run first(mlm_run(folder, 2), folder / "first");
  begin_run(first.paths(), first.config, first.data.tokenizers, first.data.sums, {});
  first.train(false);
  Config c = first.config;
  c.train.init_from = (folder / "first").string();
  c.model->d_ff = 40;
  const auto model = build_model(c, sizes_of(first.data.tokenizers));
  HEED_CHECK_ERROR(Exit::bad_input, "model.init_from: the weights do not fit this config's model",
                   transfer_weights(c.train.init_from, *model));
  HEED_CHECK_ERROR(Exit::bad_input, "none: no weights yet",
                   transfer_weights((folder / "none").string(), *model));
  c.tokenizer.kind = TokenizerKind::characters;
  HEED_CHECK_ERROR(Exit::usage, "has a tokenizer of kind word; set tokenizer.kind to this kind",
                   load_data(c));
}

BOOST_AUTO_TEST_CASE(frozen_parameters_remain_unchanged) {
  const TempFolder folder;
  Config c = mlm_run(folder, 6);
  c.train.freeze = {"encoder.layers.0.*", "embedding.weight"};
  c.optim.weight_decay = 0.1;
  c.train.ema = 0.9;
  Run run(c, folder / "run");
  const auto untrained = build_model(c, sizes_of(run.data.tokenizers));
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const Parameters before = untrained->parameters(), after = trainer.model().parameters();
  int same = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool frozen =
        before[i].name.starts_with("encoder.layers.0.") || before[i].name == "embedding.weight";
    const bool equal =
        std::ranges::equal(before[i].tensor.value().values(), after[i].tensor.value().values());
    if (frozen) BOOST_TEST(equal, before[i].name << " changed");
    if (before[i].name == "encoder.layers.1.linear1.weight") BOOST_TEST(!equal);
    same += equal;
  }
  BOOST_TEST(same == 13);
  HEED_CHECK_ERROR(Exit::usage, "model.freeze: no parameter matches \"decoder.*\"",
                   not_frozen(*untrained, std::vector<std::string>{"decoder.*"}));
  HEED_CHECK_ERROR(Exit::usage, "no parameter is left to train",
                   not_frozen(*untrained, std::vector<std::string>{"*"}));
}

/// The contents of a .npy file with a float32 matrix.
std::string matrix_file(std::size_t rows, std::size_t columns, const std::vector<float>& values) {
  return testing::npy("<f4", fmt::format("({}, {})", rows, columns),
                      std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
}

/// Writes n sequences of frames of three values, one of which is large. The label of a frame is the
/// index of the large value in the previous frame, or "none" for the first frame.
void write_frames(const TempFolder& folder, const std::string& name, int n, std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 6});
  std::string list, labels;
  for (int i = 0; i < n; ++i) {
    const std::size_t rows = 2 + random.below(4);
    std::vector<float> values;
    std::string before = "none";
    for (std::size_t r = 0; r < rows; ++r) {
      const std::uint32_t large = random.below(3);
      for (std::uint32_t c = 0; c < 3; ++c)
        values.push_back(static_cast<float>(0.3 * random.uniform()) + (c == large ? 1 : 0));
      labels += fmt::format("{}{}", r == 0 ? "" : " ", before);
      before = fmt::format("{}", large);
    }
    labels += '\n';
    const std::string file = fmt::format("{}{}.npy", name, i);
    put(folder / file, matrix_file(rows, 3, values));
    list += file + "\n";
  }
  put(folder / (name + ".list"), list);
  put(folder / (name + ".labels"), labels);
}

BOOST_AUTO_TEST_CASE(tagger_learns_the_label_of_each_frame, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = classify_run(folder, 300);
  c.task = TaskKind::tag;
  c.data = {};
  c.data.input = InputKind::features;
  c.data.features.width = 3;
  write_frames(folder, "frames", 300, 1);
  write_frames(folder, "others", 50, 2);
  c.data.train = {{(folder / "frames.list").string()}, {(folder / "frames.labels").string()}, {}};
  c.data.valid = {{(folder / "others.list").string()}, {(folder / "others.labels").string()}, {}};
  c.tokenizer.shared = true;
  c.model->segments = 1;
  c.model->input_width = 3;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("F1", e.value(Metric::f1), >, 0.95);
  BOOST_TEST((trainer.task()
                  .make_generator(trainer.loaded_model(), 1)
                  ->lines(run.data.valid.source_lines, 0) == e.outputs));
  Config again = run.config;
  again.train.steps = 20;
  again.model->dropout = 0.1;
  check_repeats_bits(again, folder / "again");

  put(folder / "others.labels", "0 1\n");
  c.data.valid.target = {(folder / "others.labels").string()};
  put(folder / "others.list", "others0.npy\n");
  put(folder / "others0.npy", matrix_file(3, 3, std::vector<float>(9)));
  HEED_CHECK_ERROR(
      Exit::bad_input,
      (folder / "others.labels").string() + ":1: the numbers of rows (3) and labels (2) differ",
      load_data(c));
}

BOOST_AUTO_TEST_SUITE_END()
