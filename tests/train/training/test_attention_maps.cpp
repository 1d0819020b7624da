// Attention maps of trained models, as shown by `heed attention`.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "data/sources/generated/drawings.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "tests/train/trainer_support.h"
#include "train/loop/trainer.h"
#include "train/views/report/attention/page.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(attention_of_models)

namespace {

/// The config of a run that learns captions for images of 16 × 16 pixels.
Config captions_run(std::int64_t steps) {
  Config c = small_run(steps);
  c.task = TaskKind::seq2seq;
  c.data = {};
  c.data.input = InputKind::image;
  c.data.image = {.height = 16, .width = 16, .channels = 3, .patch = 4};
  c.data.synthetic = {.name = SyntheticKind::captions, .train = 8000, .valid = 20, .test = 100};
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.shared = true;
  c.model->d_model = 48;
  c.model->d_ff = 96;
  c.model->heads = 4;
  c.model->encoder_layers = c.model->decoder_layers = 1;
  c.model->input_width = patch_width(c.data.image);
  c.model->positions = PositionKind::learned;
  c.model->max_positions = 32;
  c.model->dropout = 0;
  c.optim.lr = 3e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = 100, .steps = steps};
  c.decode = {};
  c.decode.beam = 1;
  c.decode.max_length = 16;
  c.train.batch_tokens = 1024;
  c.train.validate_every = c.train.save_every = steps;
  return c;
}

/// For each of the 16 patches, whether it is at least partly covered by a shape such as "red square
/// 3 4 8" (left, top, size).
std::vector<bool> patches_of_shape(const std::string& shape) {
  std::vector<bool> covered(16);
  std::smatch found;
  const std::regex form(R"((\w+) (\w+) (\d+) (\d+) (\d+))");
  BOOST_REQUIRE(std::regex_match(shape, found, form));
  const int left = std::stoi(found[3]), top = std::stoi(found[4]), size = std::stoi(found[5]);
  for (int y = top; y < top + size; ++y)
    for (int x = left; x < left + size; ++x) covered[y / 4 * 4 + x / 4] = true;
  return covered;
}

struct Shares {
  // Sums of the weights on patches that only the named shape covers, and on patches that only the
  // other shape covers.
  double named = 0, unnamed = 0;
  int named_larger = 0, words = 0;  // number of names whose shape has more weight; number of names
};

/// Adds the cross-attention weights of those decoder rows of a line that predict the name of a
/// shape.
void add_shares(const AttentionMaps& maps, const std::string& drawing, Shares& shares) {
  const std::size_t middle = drawing.find(';');
  const std::array<std::string, 2> shapes{drawing.substr(8, middle - 8),
                                          drawing.substr(middle + 1)};
  const std::array<std::vector<bool>, 2> covered{patches_of_shape(shapes[0]),
                                                 patches_of_shape(shapes[1])};
  const LayerWeights& cross = maps.layers.back();
  for (const std::size_t which : {0, 1}) {
    const std::size_t space = shapes[which].find(' ');
    const std::string colour = shapes[which].substr(0, space),
                      kind = shapes[which].substr(space + 1,
                                                  shapes[which].find(' ', space + 1) - space - 1);
    for (std::size_t i = 1; i + 1 < maps.target.size(); ++i) {
      // The row of the colour predicts the kind of shape.
      if (maps.target[i] != colour || maps.target[i + 1] != kind) continue;
      double named = 0, unnamed = 0;
      for (const HeadWeights& head : cross.heads) {
        for (std::size_t patch = 0; patch < 16; ++patch) {
          const double w = head.weights.row(static_cast<std::int64_t>(i))[patch] /
                           static_cast<double>(cross.heads.size());
          if (covered[which][patch] && !covered[1 - which][patch]) named += w;
          if (covered[1 - which][patch] && !covered[which][patch]) unnamed += w;
        }
      }
      shares.named += named;
      shares.unnamed += unnamed;
      shares.named_larger += named > unnamed ? 1 : 0;
      ++shares.words;
    }
  }
}

AttentionMaps maps_of(Trainer& trainer, const std::string& line, const std::string& output) {
  const LoadedModel trained = trainer.loaded_model();
  return attention_maps(trained, trainer.task().config(),
                        trainer.task().batch_of_line(trained.tokenizers, line, output));
}

}  // namespace

BOOST_AUTO_TEST_CASE(cross_attention_concentrates_on_the_named_shape,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(captions_run(1200), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  Shares shares;
  const Dataset& test = run.data.test;
  for (std::size_t i = 0; i < test.source_lines.size(); ++i)
    add_shares(maps_of(trainer, test.source_lines[i], test.target_lines[i]), test.source_lines[i],
               shares);
  BOOST_REQUIRE(shares.words > 150);
  const double n = shares.words;
  HEED_CHECK_LEARNED("share of the named shape in the weight on both shapes",
                     shares.named / (shares.named + shares.unnamed), >, 0.65);
  HEED_CHECK_LEARNED("share of words whose named shape has more weight", shares.named_larger / n, >,
                     0.8);

  const std::string drawing = test.source_lines[0], caption = test.target_lines[0];
  AttentionMaps maps = maps_of(trainer, drawing, caption);
  BOOST_TEST(maps.source.size() == 16);
  BOOST_TEST(maps.source[5] == "2,2");
  BOOST_TEST(maps.target.front() == "<s>");
  BOOST_REQUIRE(maps.grid);
  const Image drawn = draw_image(drawing, 16, 16, 3);
  BOOST_TEST((maps.grid->image.values == drawn.values));
  BOOST_REQUIRE(maps.layers.size() == 3);
  BOOST_TEST(maps.layers[0].name == "encoder.layers.0.self_attn");
  BOOST_TEST(maps.layers[1].name == "decoder.layers.0.self_attn");
  BOOST_TEST(maps.layers[2].name == "decoder.layers.0.multihead_attn");
  BOOST_TEST((&maps.queries(maps.layers[2]) == &maps.target));
  BOOST_TEST((&maps.keys(maps.layers[2]) == &maps.source));
  const std::string page = attention_page(maps, {"captions", {{"input", drawing}}});
  BOOST_TEST(page.find("data:image/png;base64,") != std::string::npos);
  BOOST_TEST(page.find("attention rollout") != std::string::npos);
  BOOST_TEST(page.find("http://www.w3.org/2000/svg") != std::string::npos);
  maps.layers = {maps.layers[2]};
  BOOST_TEST(svg_file(attention_drawing(maps)).starts_with("<svg"));
}

// A convolutional front end has fewer output rows than the source.
BOOST_AUTO_TEST_CASE(maps_have_the_output_rows_of_the_front_end) {
  const TempFolder folder;
  Config c = captions_run(1);
  c.data.image.patch = 2;
  c.data.synthetic.train = 50;
  c.data.synthetic.test = 1;
  c.model->input_width = patch_width(c.data.image);
  c.model->grid_height = c.model->grid_width = 8;
  c.model->front_end = {FrontEndKind::conv, 2};
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const std::string drawing = run.data.test.source_lines[0];
  const AttentionMaps maps = maps_of(trainer, drawing, "a red square");
  const std::vector<std::string> names{"1,1", "1,2", "2,1", "2,2"};
  BOOST_TEST(maps.source == names, boost::test_tools::per_element());
  BOOST_TEST((maps.layers[0].heads[0].weights.shape() == Shape{4, 4}));
  BOOST_REQUIRE(maps.grid);
  BOOST_TEST(maps.grid->side == 8);
  BOOST_TEST((maps.grid->image.values == draw_image(drawing, 16, 16, 3).values));
  BOOST_TEST(attention_page(maps, {"conv", {}}).find("2,2 → 1,1") != std::string::npos);

  c.data.input = InputKind::features;
  c.data.features = {.width = 8, .rate = 4000};
  c.data.synthetic.name = SyntheticKind::tones;
  c.data.synthetic.max_length = 2;
  c.model->input_width = 8;
  c.model->grid_height = c.model->grid_width = 0;
  c.model->max_positions = 256;
  Run sound(c, folder / "sound");
  Trainer sound_trainer(sound.config, sound.paths(), sound.data, sound.run_log);
  sound_trainer.train();
  const AttentionMaps sound_maps = maps_of(sound_trainer, sound.data.test.source_lines[0], "1");
  const std::int64_t frames = sound.data.test.source_rows(0);
  BOOST_TEST(std::ssize(sound_maps.source) == (frames + 3) / 4);
  BOOST_TEST(sound_maps.layers[0].heads[0].weights.rows() == std::ssize(sound_maps.source));
}

BOOST_AUTO_TEST_CASE(names_of_tubelets_contain_time_and_position) {
  const TempFolder folder;
  Config c = captions_run(1);
  c.task = TaskKind::classify;
  c.data.input = InputKind::video;
  c.data.image = {.height = 8, .width = 8, .channels = 1, .patch = 4};
  c.data.video = {.frames = 10, .tubelet = 5};
  c.data.synthetic = {.name = SyntheticKind::motion, .train = 100, .valid = 10, .test = 1};
  c.model->input_width = 5 * 16;
  c.model->pool = Pool::first;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const AttentionMaps maps = maps_of(trainer, run.data.test.source_lines[0], "");
  const std::vector<std::string> names{"class", "1:1,1", "1:1,2", "1:2,1", "1:2,2",
                                       "2:1,1", "2:1,2", "2:2,1", "2:2,2"};
  BOOST_TEST(maps.source == names, boost::test_tools::per_element());
  BOOST_TEST(maps.layers[0].heads[0].weights.rows() == 9);
}

BOOST_AUTO_TEST_CASE(maps_of_text_have_a_row_for_each_token) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::lm, TaskKind::tag, TaskKind::classify}) {
    Config c = small_run(2);
    c.task = task;
    c.data = {};
    c.tokenizer.kind = TokenizerKind::words;
    if (task == TaskKind::lm) {
      put(folder / "text", "a b c a b c a b c\n");
      c.data.train.text = {(folder / "text").string()};
      c.model->context = 4;
    } else {
      put(folder / "source", "a b c\nb a c\n");
      put(folder / "target", task == TaskKind::tag ? "x y z\ny x z\n" : "x\ny\n");
      c.data.train = {{(folder / "source").string()}, {(folder / "target").string()}, {}};
    }
    BOOST_TEST_CONTEXT(info_of(task).name) {
      Run run(c, folder / std::string(info_of(task).name));
      Trainer trainer(run.config, run.paths(), run.data, run.run_log);
      trainer.train();
      const AttentionMaps maps = maps_of(trainer, "a b c a b", "");
      const bool lm = task == TaskKind::lm;
      const std::vector<std::string>& names = lm ? maps.target : maps.source;
      const std::vector<std::string> expected =
          lm ? std::vector<std::string>{"b", "c", "a", "b"}  // the last window of the text
          : task == TaskKind::tag
              ? std::vector<std::string>{"a", "b", "c", "a", "b"}
              : std::vector<std::string>{"<s>", "a", "b", "c", "a", "b", "</s>"};
      BOOST_TEST(names == expected, boost::test_tools::per_element());
      BOOST_TEST(std::ssize(maps.layers) ==
                 (lm ? c.model->decoder_layers : c.model->encoder_layers));
      BOOST_TEST(!maps.grid);
      const auto n = std::ssize(names);
      for (const LayerWeights& layer : maps.layers) {
        BOOST_TEST(std::ssize(layer.heads) == c.model->heads);
        for (const HeadWeights& head : layer.heads) {
          BOOST_TEST(head.entropy >= 0);
          BOOST_TEST(head.entropy <= std::log(static_cast<double>(n)) + 1e-6);
          BOOST_TEST(head.distance < static_cast<double>(n));
          if (lm)
            BOOST_TEST(head.weights.row(0)[0] == 1);  // the first token attends only to itself
        }
      }
      const Array all = rollout(maps, lm);
      BOOST_REQUIRE(all.rows() == n);
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += all.row(i)[j];
        BOOST_TEST(std::abs(sum - 1) < 1e-5);
      }
      BOOST_TEST(!rollout(maps, !lm).defined());
      const nlohmann::json record = json_of(maps);
      BOOST_TEST(record["layers"].size() == maps.layers.size());
      BOOST_TEST(record["layers"][0]["heads"][0]["weights"].size() == static_cast<std::size_t>(n));
    }
  }
}

BOOST_AUTO_TEST_CASE(models_without_attention_weights_are_refused) {
  const TempFolder folder;
  put(folder / "text", "a b c a b c a b c\n");
  Config c = small_run(1);
  c.task = TaskKind::lm;
  c.data = {};
  c.data.train.text = {(folder / "text").string()};
  c.tokenizer.kind = TokenizerKind::words;
  c.model->attention.pattern = PatternKind::linear;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_CHECK_EXCEPTION(maps_of(trainer, "a b", ""), Error, [](const Error& e) {
    return e.code == Exit::usage &&
           std::string(e.what()).find("no attention weights") != std::string::npos;
  });
}

BOOST_AUTO_TEST_SUITE_END()
