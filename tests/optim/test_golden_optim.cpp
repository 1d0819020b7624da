// Updates, learning rates and clipping, compared with those of PyTorch.
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tests/nn/golden.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(golden)

namespace {

ScheduleKind schedule_of(const std::string& name) {
  static const std::map<std::string, ScheduleKind> kinds{
      {"noam", ScheduleKind::noam},
      {"inverse_sqrt", ScheduleKind::inverse_sqrt},
      {"cosine", ScheduleKind::cosine},
      {"linear", ScheduleKind::linear},
      {"constant", ScheduleKind::constant}};
  return kinds.at(name);
}

OptimOptions options_of(const nlohmann::json& a) {
  static const std::map<std::string, OptimizerKind> kinds{
      {"adam", OptimizerKind::adam}, {"adamw", OptimizerKind::adamw}, {"sgd", OptimizerKind::sgd}};
  OptimOptions o;
  o.name = kinds.at(a.at("optimizer"));
  o.lr = a.at("lr");
  if (a.contains("betas")) o.betas = {a.at("betas")[0], a.at("betas")[1]};
  o.eps = a.value("eps", o.eps);
  o.weight_decay = a.value("weight_decay", 0.0);
  o.decay = DecayedParameters::all;  // the default of PyTorch's optimizers
  o.momentum = a.value("momentum", 0.0);
  o.schedule.name = schedule_of(a.value("schedule", "constant"));
  o.schedule.warmup = a.value("warmup", std::int64_t{0});
  return o;
}

/// Step i of an array [steps, …].
Array step_of(const Array& all, std::int64_t i) {
  const Array row = all.sliced(i, i + 1);
  std::vector<std::int64_t> shape(row.shape().extents().begin() + 1, row.shape().extents().end());
  return row.reshaped(Shape(shape));
}

double worst = 0;

void check_optimizer(const GoldenCase& c) {
  const OptimOptions options = options_of(c.attributes());
  const std::vector<std::string> names{"p0", "p1"};
  Parameters parameters;
  for (const std::string& name : names) {
    parameters.push_back({name, Tensor::variable(step_of(c.array("weights/" + name), 0).clone())});
  }
  Optimizer optimizer(options, parameters);
  const std::int64_t steps = c.attributes().at("steps");
  for (std::int64_t t = 1; t <= steps; ++t) {
    std::vector<Array> gradients;
    for (const std::string& name : names)
      gradients.push_back(step_of(c.array("gradients/" + name), t - 1));
    optimizer.step(gradients, learning_rate(options, t, steps));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double d =
          difference(parameters[i].tensor.value(), step_of(c.array("weights/" + names[i]), t));
      worst = std::max(worst, d);
      BOOST_TEST(d <= 1e-11, "step " << t << ", " << names[i] << " differs by " << d);
    }
  }
  BOOST_TEST(optimizer.steps() == steps);
}

void check_schedule(const GoldenCase& c) {
  const nlohmann::json& a = c.attributes();
  OptimOptions options;
  options.lr = a.at("lr");
  options.schedule = {schedule_of(a.at("schedule")), a.at("warmup"), a.at("steps"), a.at("min_lr")};
  const Array y = c.array("y");
  for (std::int64_t t = 1; t <= y.size(); ++t) {
    BOOST_TEST(std::abs(learning_rate(options, t, 1000) - y.data()[t - 1]) < 1e-16, "step " << t);
  }
  options.schedule.steps = 0;  // 0: the decay ends with the run
  for (std::int64_t t = 1; t <= y.size(); ++t) {
    BOOST_TEST(std::abs(learning_rate(options, t, a.at("steps")) - y.data()[t - 1]) < 1e-16,
               "step " << t);
  }
}

void check_clip(const GoldenCase& c) {
  double squares = 0;
  for (const char* name : {"x0", "x1"}) {
    const Array x = c.array(name);
    for (const real v : x.values()) squares += v * v;
  }
  const double norm = std::sqrt(squares);
  BOOST_TEST(std::abs(norm - c.array("norm").item()) < 1e-12);
  const double factor = clip_factor(norm, c.attributes().at("clip_norm"));
  for (const char* i : {"0", "1"}) {
    const Array x = c.array(std::string("x") + i), y = c.array(std::string("y") + i);
    for (std::int64_t k = 0; k < x.size(); ++k)
      BOOST_TEST(std::abs(factor * x.data()[k] - y.data()[k]) < 1e-12);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(optimizers_schedules_and_clipping_agree_with_pytorch) {
  const SafetensorsFile file = golden_file("optim.safetensors");
  int optimizers = 0, schedules = 0, clips = 0;
  for (const auto& [name, text] : file.metadata()) {
    const GoldenCase c(file, name);
    BOOST_TEST_CONTEXT(name) {
      if (c.attributes().contains("optimizer")) {
        check_optimizer(c);
        ++optimizers;
      } else if (c.attributes().contains("clip_norm")) {
        check_clip(c);
        ++clips;
      } else {
        check_schedule(c);
        ++schedules;
      }
    }
  }
  BOOST_TEST(optimizers == 7);
  BOOST_TEST(schedules == 12);
  BOOST_TEST(clips == 2);
  BOOST_TEST_MESSAGE("maximum difference from PyTorch's weights: " << worst);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
