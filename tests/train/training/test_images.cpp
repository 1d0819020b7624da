// Images, videos and sound as input: classification, and generation of text.
#include <fmt/format.h>

#include "data/inputs/input_info.h"
#include "nn/layers/positions.h"
#include "tests/train/trainer_support.h"
#include "train/decode/search.h"
#include "train/loop/trainer.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(images)

namespace {

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const std::uint32_t n : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 255);
  }
  return bytes + values;
}

/// Writes n images of 8 × 8 pixels, their labels and their texts. The images contain noise and a
/// bright spot in one of the four quadrants.
void write_spots(const TempFolder& folder, const std::string& name, std::uint32_t n,
                 std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 3});
  std::string images, labels, texts;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::string image(64, '\0');
    for (char& pixel : image) pixel = static_cast<char>(random.below(120));
    const std::uint32_t quarter = random.below(4), y = quarter / 2 * 4 + random.below(4),
                        x = quarter % 2 * 4 + random.below(4);
    image[y * 8 + x] = static_cast<char>(255);
    images += image;
    labels += static_cast<char>(quarter);
    texts += fmt::format("{} {}\n", quarter / 2 == 0 ? "top" : "bottom",
                         quarter % 2 == 0 ? "left" : "right");
  }
  put(folder / (name + ".images"), idx({n, 8, 8}, images));
  put(folder / (name + ".labels"), idx({n}, labels));
  put(folder / (name + ".texts"), texts);
}

Config image_run(const TempFolder& folder, TaskKind task, std::int64_t steps) {
  const std::string target = task == TaskKind::classify ? ".labels" : ".texts";
  Config c = small_run(steps);
  c.task = task;
  c.data = {};
  c.data.input = InputKind::image;
  c.data.image = {.height = 8, .width = 8, .patch = 2};
  for (const auto& [name, n, files] :
       {std::tuple("train", 1500U, &c.data.train), std::tuple("valid", 100U, &c.data.valid)}) {
    write_spots(folder, name, n, n);
    *files = {{(folder / (std::string(name) + ".images")).string()},
              {(folder / (name + target)).string()},
              {}};
  }
  c.tokenizer.kind = TokenizerKind::words;
  c.tokenizer.shared = true;
  c.model->d_model = 24;
  c.model->d_ff = 48;
  c.model->encoder_layers = 2;
  c.model->input_width = patch_width(c.data.image);
  c.model->positions = PositionKind::learned;
  c.model->max_positions = 20;
  c.model->dropout = 0;
  c.optim.lr = 5e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = steps / 10, .steps = steps};
  c.decode = {};
  c.decode.beam = 2;
  c.decode.max_length = 5;
  c.train.batch_tokens = 500;
  c.train.validate_every = c.train.save_every = std::max<std::int64_t>(steps / 2, 1);
  return c;
}

/// Writes n videos of 4 frames of 4 × 4 pixels, their labels and their texts. A bright spot moves
/// in one of four directions and wraps around at the edges.
void write_videos(const TempFolder& folder, const std::string& name, std::uint32_t n,
                  std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 4});
  std::string videos, labels, texts;
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 4> ways{
      {{1, 0}, {3, 0}, {0, 1}, {0, 3}}};
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t way = random.below(4);
    std::uint32_t x = random.below(4), y = random.below(4);
    for (int t = 0; t < 4; ++t, x += ways[way].first, y += ways[way].second) {
      std::string frame(16, '\0');
      frame[y % 4 * 4 + x % 4] = static_cast<char>(255);
      videos += frame;
    }
    labels += static_cast<char>(way);
    texts += fmt::format("{} {}\n", way < 2 ? "along" : "across", way % 2 == 0 ? "forth" : "back");
  }
  put(folder / (name + ".images"), idx({n, 4, 4, 4}, videos));
  put(folder / (name + ".labels"), idx({n}, labels));
  put(folder / (name + ".texts"), texts);
}

Config video_run(const TempFolder& folder, TaskKind task, std::int64_t steps) {
  Config c = image_run(folder, task, steps);
  write_videos(folder, "train", 1500, 1500);
  write_videos(folder, "valid", 100, 100);
  c.data.input = InputKind::video;
  c.data.image = {.height = 4, .width = 4, .patch = 2};
  c.data.video = {.frames = 4, .tubelet = 2};
  c.model->input_width = row_width(c.data);
  return c;
}

/// The config with a convolutional front end of `layers` layers.
Config with_convolutions(Config c, std::int64_t layers) {
  c.model->front_end = {FrontEndKind::conv, layers};
  if (c.data.input == InputKind::image) {
    c.model->grid_height = c.data.image.height / c.data.image.patch;
    c.model->grid_width = c.data.image.width / c.data.image.patch;
  }
  c.model->input_width = row_width(c.data);
  c.model->pool = Pool::mean;
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tubelet_encoder_learns_the_direction_of_a_spot,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    const Config c = video_run(folder, task, 400);
    Run run(c, folder / std::string(info_of(task).name));
    BOOST_TEST(run.data.train.source_rows(0) == (task == TaskKind::classify ? 9 : 8));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    BOOST_TEST(trainer.train() == 0);
    const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
    const Metric metric = task == TaskKind::classify ? Metric::accuracy : Metric::exact_match;
    HEED_CHECK_LEARNED(info_of(metric).label, e.value(metric), >, 0.95);
    BOOST_TEST((trainer.task()
                    .make_generator(trainer.loaded_model(), 1)
                    ->lines(run.data.valid.source_lines, 0) == e.outputs));
  }
}

BOOST_AUTO_TEST_CASE(video_run_is_bitwise_reproducible) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    Config c = video_run(folder, task, 40);
    c.data.image.shift = 1;
    c.model->dropout = 0.2;
    check_repeats_bits(c, folder / std::string(info_of(task).name));
  }
}

BOOST_AUTO_TEST_CASE(motion_labels_are_one_word_for_a_classifier_and_two_for_a_decoder) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    Config c = video_run(folder, task, 1);
    c.data.train = c.data.valid = {};
    c.data.video.frames = 10;
    c.model->max_positions = 21;
    c.data.image = {.height = 8, .width = 8, .patch = 4};
    c.data.synthetic = {.name = SyntheticKind::motion, .train = 400, .valid = 10, .test = 10};
    const ExperimentData data = load_data(c);
    BOOST_TEST(data.train.source_rows(0) == (task == TaskKind::classify ? 21 : 20));
    const std::string& label = data.valid.target_lines[0];
    BOOST_TEST(label.find(task == TaskKind::classify ? '-' : ' ') != std::string::npos);
    BOOST_TEST(data.tokenizers.target->size() == 3 + (task == TaskKind::classify ? 16 : 8));
  }
}

BOOST_AUTO_TEST_CASE(video_of_another_length_is_refused) {
  const TempFolder folder;
  Config c = video_run(folder, TaskKind::classify, 1);
  c.data.video.frames = 2;
  HEED_CHECK_ERROR(Exit::bad_input, "data.train: line 1: ", load_data(c));
  HEED_CHECK_ERROR(Exit::bad_input, "the number of frames is 4, but data.video.frames is 2",
                   load_data(c));
}

BOOST_AUTO_TEST_CASE(conv_front_end_learns_the_quadrant_of_a_spot,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    Config c = image_run(folder, task, 400);
    c.data.image.patch = 1;
    c.model->max_positions = 10;  // 8 × 8 pixels become 2 × 2 rows
    c.train.batch_tokens = 2000;
    Run run(with_convolutions(c, 2), folder / std::string(info_of(task).name));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    BOOST_TEST(trainer.train() == 0);
    const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
    const Metric metric = task == TaskKind::classify ? Metric::accuracy : Metric::exact_match;
    HEED_CHECK_LEARNED(info_of(metric).label, e.value(metric), >, 0.85);
  }
}

BOOST_AUTO_TEST_CASE(conv_front_end_run_is_bitwise_reproducible) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    Config c = with_convolutions(image_run(folder, task, 40), 1);
    c.model->dropout = 0.2;
    c.train.recompute = task == TaskKind::seq2seq;
    c.train.rdrop = 1;
    check_repeats_bits(c, folder / std::string(info_of(task).name));
  }
}

BOOST_AUTO_TEST_CASE(vision_transformer_learns_the_quadrant_of_a_spot,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  for (const Pool pool : {Pool::first, Pool::mean}) {
    Config c = image_run(folder, TaskKind::classify, 400);
    c.model->pool = pool;
    Run run(c, folder / std::string(name_of(pool)));
    BOOST_TEST(run.data.train.source_rows(0) == (pool == Pool::first ? 17 : 16));
    Trainer trainer(run.config, run.paths(), run.data, run.run_log);
    BOOST_TEST(trainer.train() == 0);
    const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
    HEED_CHECK_LEARNED(std::string(name_of(pool)) + ": accuracy", e.value(Metric::accuracy), >,
                       0.9);
    const std::vector<std::string> asked{run.data.valid.source_lines[7],
                                         run.data.valid.source_lines[3]};
    const std::vector<std::string> given =
        trainer.task().make_generator(trainer.loaded_model(), 1)->lines(asked, 0);
    BOOST_TEST((given == std::vector<std::string>{e.outputs[7], e.outputs[3]}));
  }
}

Config swin_run(const TempFolder& folder, std::int64_t steps) {
  Config c = image_run(folder, TaskKind::classify, steps);
  c.model->kind = ModelKind::swin;
  c.model->swin = {2, {2, 1}};
  c.model->grid_height = c.model->grid_width = 4;
  c.model->positions = PositionKind::none;
  c.model->pool = Pool::mean;
  return c;
}

BOOST_AUTO_TEST_CASE(swin_transformer_learns_the_quadrant_of_a_spot,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(swin_run(folder, 400), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("accuracy", e.value(Metric::accuracy), >, 0.95);
}

BOOST_AUTO_TEST_CASE(decoder_describes_the_quadrant_of_a_spot, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Run run(image_run(folder, TaskKind::seq2seq, 900), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("exact match", e.value(Metric::exact_match), >, 0.95);
  BOOST_TEST((trainer.task()
                  .make_generator(trainer.loaded_model(), 1)
                  ->lines(run.data.valid.source_lines, 0) == e.outputs));
  Team team(2);
  DecodeOptions slow = run.config.decode;
  slow.cached = false;
  const FrozenModel frozen(trainer.model());
  const auto with = translate(frozen, run.data.valid, run.config.decode, 1, team),
             without = translate(frozen, run.data.valid, slow, 1, team);
  for (std::size_t i = 0; i < with.size(); ++i) BOOST_TEST((with[i].tokens == without[i].tokens));
}

BOOST_AUTO_TEST_CASE(image_run_is_bitwise_reproducible) {
  const TempFolder folder;
  for (const TaskKind task : {TaskKind::classify, TaskKind::seq2seq}) {
    Config c = image_run(folder, task, 40);
    c.data.image.shift = 1;
    c.data.image.flip = true;
    c.model->dropout = 0.2;
    c.train.rdrop = 1;
    check_repeats_bits(c, folder / std::string(info_of(task).name));
  }
  Config c = swin_run(folder, 40);
  c.model->dropout = 0.2;
  check_repeats_bits(c, folder / "swin");
}

BOOST_AUTO_TEST_CASE(decoder_transcribes_the_digits_of_tones, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = image_run(folder, TaskKind::seq2seq, 900);
  c.data = {};
  c.data.input = InputKind::features;
  c.data.features = {.width = 16, .stack = 4, .normalise = true, .rate = 4000, .window = 32};
  c.data.synthetic = {
      .name = SyntheticKind::tones, .train = 3000, .valid = 100, .test = 5, .max_length = 2};
  c.model->input_width = row_width(c.data);
  c.model->positions = PositionKind::sinusoidal;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("exact match", e.value(Metric::exact_match), >, 0.6);
  BOOST_TEST((trainer.task()
                  .make_generator(trainer.loaded_model(), 1)
                  ->lines(run.data.valid.source_lines, 0) == e.outputs));
}

BOOST_AUTO_TEST_CASE(conv_front_end_transcribes_the_digits_of_tones,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = image_run(folder, TaskKind::seq2seq, 900);
  c.data = {};
  c.data.input = InputKind::features;
  c.data.features = {.width = 16, .normalise = true, .rate = 4000, .window = 32};
  c.data.synthetic = {
      .name = SyntheticKind::tones, .train = 3000, .valid = 100, .test = 5, .max_length = 2};
  c.model->positions = PositionKind::sinusoidal;
  c.train.batch_tokens = 2000;
  Run run(with_convolutions(c, 2), folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), run.data.valid, {});
  HEED_CHECK_LEARNED("exact match", e.value(Metric::exact_match), >, 0.6);
  BOOST_TEST((trainer.task()
                  .make_generator(trainer.loaded_model(), 1)
                  ->lines(run.data.valid.source_lines, 0) == e.outputs));
}

BOOST_AUTO_TEST_CASE(sounds_longer_than_max_length_are_skipped_in_training) {
  const TempFolder folder;
  Config c = image_run(folder, TaskKind::seq2seq, 1);
  c.data = {};
  c.data.input = InputKind::features;
  c.data.max_length = 40;
  c.model->positions = PositionKind::sinusoidal;
  c.data.synthetic = {
      .name = SyntheticKind::tones, .train = 50, .valid = 5, .test = 5, .max_length = 3};
  c.model->input_width = row_width(c.data);
  const ExperimentData data = load_data(c);
  BOOST_TEST(data.train.skipped_long > 0);
  BOOST_TEST(data.train.size() + data.train.skipped_long == 50);
  for (std::int64_t i = 0; i < data.train.size(); ++i) BOOST_TEST(data.train.source_rows(i) <= 40);
}

BOOST_AUTO_TEST_CASE(sound_run_is_bitwise_reproducible) {
  const TempFolder folder;
  Config c = image_run(folder, TaskKind::seq2seq, 40);
  c.data = {};
  c.data.input = InputKind::features;
  c.data.features = {.width = 8, .stack = 4, .rate = 4000};
  c.data.synthetic = {
      .name = SyntheticKind::tones, .train = 100, .valid = 5, .test = 5, .max_length = 2};
  c.model->input_width = row_width(c.data);
  c.model->positions = PositionKind::rotary;
  c.model->dropout = 0.1;
  check_repeats_bits(c, folder / "run");
}

BOOST_AUTO_TEST_CASE(checksum_of_the_training_data_changes_with_the_images) {
  const TempFolder folder;
  const Config c = image_run(folder, TaskKind::classify, 1);
  const std::string before = load_data(c).sums.train;
  BOOST_TEST(load_data(c).sums.train == before);
  std::string bytes = get(folder / "train.images");
  bytes.back() ^= 1;
  put(folder / "train.images", bytes);
  BOOST_TEST(load_data(c).sums.train != before);
}

BOOST_AUTO_TEST_CASE(image_of_another_size_is_refused) {
  const TempFolder folder;
  Config c = image_run(folder, TaskKind::classify, 1);
  c.data.image.height = 10;
  HEED_CHECK_ERROR(Exit::bad_input, "data.train: line 1: ", load_data(c));
  HEED_CHECK_ERROR(Exit::bad_input,
                   "the image has 8 x 8 pixels (height x width), but data.image requires 10 x 8",
                   load_data(c));
}

BOOST_AUTO_TEST_SUITE_END()
