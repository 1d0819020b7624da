// Knowledge distillation: a student learns from its teacher's outputs.
#include "tests/train/trainer_support.h"
#include "train/loop/teacher.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(distillation)

namespace {

/// Trains a run to reverse short sequences, stores it in `run` and returns it.
Run& teacher_in(const TempFolder& folder, std::optional<Run>& run) {
  Config c = small_run(600);
  c.data.synthetic.train = 1000;
  c.data.synthetic.max_length = 4;
  c.data.synthetic.symbols = 6;
  c.model->d_model = 24;
  c.model->dropout = 0;
  c.train.validate_every = c.train.save_every = 200;
  run.emplace(c, folder / "teacher");
  begin_run(run->paths(), run->config, run->data.tokenizers, run->data.sums, {});
  run->train(false);
  return *run;
}

Config student_of(const Run& teacher, double weight) {
  Config c = teacher.config;
  c.model->d_model = 18;
  c.train.distill = {.teacher = teacher.paths().path.string(), .weight = weight, .temperature = 2};
  return c;
}

}  // namespace

// With weight 1, the loss consists only of the divergence, so label smoothing has no effect.
BOOST_AUTO_TEST_CASE(student_learns_from_its_teacher_alone, *boost::unit_test::label("learns")) {
  const TempFolder folder;
  std::optional<Run> first;
  Config c = student_of(teacher_in(folder, first), 1);
  Run student(c, folder / "student");
  Trainer trainer(student.config, student.paths(), student.data, student.run_log);
  BOOST_TEST(trainer.train() == 0);
  const Evaluation e = trainer.task().evaluate(trainer.loaded_model(), student.data.valid, {});
  HEED_CHECK_LEARNED("token accuracy", e.value(Metric::token_accuracy), >, 0.6);
  c.train.label_smoothing = 0.9;
  Run smooth(c, folder / "smooth");
  smooth.train(false);
  BOOST_TEST(get(student.checkpoints().folder_of(600) / "model.safetensors") ==
             get(smooth.checkpoints().folder_of(600) / "model.safetensors"));
}

BOOST_AUTO_TEST_CASE(student_run_is_bitwise_reproducible) {
  const TempFolder folder;
  std::optional<Run> first;
  Config c = student_of(teacher_in(folder, first), 0.5);
  c.train.steps = 40;
  c.train.validate_every = c.train.save_every = 20;
  c.model->dropout = 0.2;
  check_repeats_bits(c, folder / "run");
}

BOOST_AUTO_TEST_CASE(incompatible_teacher_is_refused) {
  const TempFolder folder;
  std::optional<Run> first;
  Config c = student_of(teacher_in(folder, first), 0.5);
  const auto refused = [&](const std::string& message) {
    const ExperimentData data = load_data(c);
    HEED_CHECK_ERROR(Exit::bad_input, message, Teacher(c, data));
  };
  c.data.synthetic.symbols = 7;
  refused("has another vocabulary");
  c = first->config;
  c.train.distill.teacher = (folder / "teacher").string();
  c.task = TaskKind::tag;
  refused("is a run of task seq2seq, but this run has task tag");
  c = first->config;
  c.train.distill.teacher = (folder / "teacher").string();
  c.data.lowercase = true;
  refused("has data.lowercase: false, but this run has true");
  // Options that determine the input rows must have the same values for student and teacher.
  const std::pair<const char*, void (*)(DataOptions&)> changes[] = {
      {"image.height", [](DataOptions& o) { o.image.height *= 2; }},
      {"image.width", [](DataOptions& o) { o.image.width *= 2; }},
      {"image.channels", [](DataOptions& o) { o.image.channels = 3; }},
      {"image.patch", [](DataOptions& o) { o.image.patch = 7; }},
      {"image.mean", [](DataOptions& o) { o.image.mean = 0.25; }},
      {"image.deviation", [](DataOptions& o) { o.image.deviation = 0.25; }},
      {"video.frames", [](DataOptions& o) { o.video.frames *= 2; }},
      {"video.tubelet", [](DataOptions& o) { o.video.tubelet = 4; }},
      {"features.width", [](DataOptions& o) { o.features.width *= 2; }},
      {"features.stack", [](DataOptions& o) { o.features.stack = 3; }},
      {"features.normalise", [](DataOptions& o) { o.features.normalise = true; }},
      {"features.rate", [](DataOptions& o) { o.features.rate /= 2; }},
      {"features.window", [](DataOptions& o) { o.features.window *= 2; }},
      {"features.hop", [](DataOptions& o) { o.features.hop *= 2; }}};
  for (const auto& [key, change] : changes) {
    c = first->config;
    c.train.distill.teacher = (folder / "teacher").string();
    change(c.data);
    refused(fmt::format("has data.{}: ", key));
  }
  c = first->config;
  c.train.distill.teacher = (folder / "teacher").string();
  HEED_CHECK_ERROR(Exit::usage, "teacher is the folder of the run itself",
                   Trainer(c, first->paths(), first->data, first->run_log));
  c.train.distill.teacher = (folder / "none").string();
  HEED_CHECK_ERROR(Exit::usage, "none", Teacher(c, first->data));
}

BOOST_AUTO_TEST_SUITE_END()
