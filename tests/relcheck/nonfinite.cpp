// Checks the promises of docs/RELIABILITY.md about non-finite numbers with 100 faults (long form:
// 2,000).
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/io/formats/safetensors.h"
#include "autograd/tape/observer.h"
#include "tests/processor_time.h"
#include "tests/relcheck/measures.h"
#include "tests/train/injector.h"
#include "tests/train/small_run.h"
#include "tests/train/training.h"
#include "train/loop/step.h"
#include "train/loop/trainer.h"

using namespace heed;
using namespace heed::relcheck;
using namespace heed::test;

namespace {

constexpr real values[] = {std::numeric_limits<real>::quiet_NaN(),
                           std::numeric_limits<real>::infinity(),
                           -std::numeric_limits<real>::infinity()};

enum class Fault { data, weight, activation, gradient };
constexpr const char* names[] = {"embedded data", "weights", "activations", "gradients"};

/// A small model after three steps of training; the fourth is run with or without a fault.
struct Trial {
  Dataset data = reversals(12);
  std::unique_ptr<Model> model = small_seq2seq(0.1);
  Optimizer optimizer{{}, model->parameters()};
  Team team{1};
  TrainStep step{*model, optimizer, team, {.shards = 1, .clip_norm = 1}};
  Injector injector;
  std::vector<Batch> batch{make_batch(data, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})};

  Trial() {
    step.run(batch, 1, 1e-3);
    injector.learn();
    step.run(batch, 2, 1e-3);
    step.run(batch, 3, 1e-3);
  }
  Bits bits() const {
    Bits all = bits_of(model->parameters());
    for (std::vector<float>& m : bits_of(optimizer.state())) all.push_back(std::move(m));
    return all;
  }
};

/// The weights and moments after four steps without a fault.
const Bits& clean_bits() {
  static const Bits bits = [] {
    Trial trial;
    trial.step.run(trial.batch, 4, 1e-3);
    return trial.bits();
  }();
  return bits;
}

enum class Outcome { caught, missed, without_effect };

Outcome outcome_of(Fault fault, Random& random) {
  Trial trial;
  const real value = values[random.below(3)];
  const auto at = static_cast<std::int64_t>(random.below(1 << 20));
  if (fault == Fault::weight) {
    const Parameters parameters = trial.model->parameters();
    Tensor weight = parameters[random.below(static_cast<std::uint32_t>(parameters.size()))].tensor;
    weight.mutable_value().data()[at % weight.size()] = value;
  } else {
    const bool forward = fault != Fault::gradient;
    const std::int64_t places = forward ? trial.injector.results : trial.injector.gradients_seen;
    // The first result is the embedding of the source.
    const std::int64_t number =
        fault == Fault::data
            ? 0
            : static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(places)));
    trial.injector.place = {forward, number, at, value};
  }
  const Bits before = trial.bits();
  try {
    trial.step.run(trial.batch, 4, 1e-3);
  } catch (const Error& e) {
    const bool reported =
        std::string_view(e.what()).find("first non-finite tensor: ") != std::string_view::npos;
    // A non-finite weight that does not affect the loss is detected only when it is updated, and
    // remains non-finite.
    const bool unchanged = same_bits(trial.bits(), before) || fault == Fault::weight;
    return e.code == Exit::non_finite && reported && unchanged ? Outcome::caught : Outcome::missed;
  }
  // A fault without effect: for example in the gradient of a value that a relu sets to zero.
  return same_bits(trial.bits(), clean_bits()) ? Outcome::without_effect : Outcome::missed;
}

void faults_are_caught(Measures& measures, std::size_t count) {
  Random random({.seed = 11, .stream = Stream::check, .index = 1});
  for (const Fault fault : {Fault::data, Fault::weight, Fault::activation, Fault::gradient}) {
    std::size_t caught = 0, missed = 0, without_effect = 0;
    while (caught + missed < count / 4) {
      const Outcome outcome = outcome_of(fault, random);
      caught += outcome == Outcome::caught;
      missed += outcome == Outcome::missed;
      without_effect += outcome == Outcome::without_effect;
    }
    measures.all_of(fmt::format("nonfinite: faults in {}, caught in their step",
                                names[static_cast<std::size_t>(fault)]),
                    caught, caught + missed);
    Measures::note(fmt::format("faults without effect on the weights: {}", without_effect));
  }
}

/// Whether all values of all checkpoints of a run are finite. Adds to `checkpoints` the number of
/// checkpoints read; reading ends at the first value that is not finite.
bool checkpoints_are_finite(const std::filesystem::path& run, std::size_t& checkpoints) {
  const CheckpointFolder folder(run);
  for (const std::int64_t step : folder.steps()) {
    ++checkpoints;
    for (const char* name : {"model.safetensors", "training.safetensors"}) {
      const SafetensorsFile file = SafetensorsFile::read(folder.folder_of(step) / name);
      for (const TensorView& t : file.tensors())
        for (const float x : t.values<float>())
          if (!std::isfinite(x)) return false;
    }
  }
  return true;
}

/// Trains a whole run that saves after every step, with a fault in a random result or gradient of
/// an op. Returns false if the fault ended the run.
bool run_with_fault(const Config& config, const std::filesystem::path& folder, Random& random) {
  const ExperimentData data = load_data(config);
  RunLog run_log;
  Trainer trainer(config, {folder}, data, run_log);
  Injector injector;
  injector.results = injector.gradients_seen = 1 << 30;  // so that the fault occurs only once
  injector.place = {random.below(2) == 0, static_cast<std::int64_t>(random.below(600)),
                    static_cast<std::int64_t>(random.below(1 << 20)), values[random.below(3)]};
  try {
    trainer.train();
  } catch (const Error& e) {
    if (e.code != Exit::non_finite) throw;
    return false;
  }
  return true;
}

void checkpoints_stay_finite(Measures& measures, std::int64_t runs) {
  Random random({.seed = 11, .stream = Stream::check, .index = 2});
  std::size_t checkpoints = 0, finite = 0;
  std::int64_t stopped = 0, skipped = 0;
  for (std::int64_t i = 0; i < runs; ++i) {
    const Scratch scratch;
    Config config = small_run(12);
    config.train.shards = 1;
    config.train.save_every = 1;
    config.train.on_nonfinite = i % 2 == 0 ? OnNonFinite::stop : OnNonFinite::skip;
    stopped += !run_with_fault(config, scratch.path, random);
    skipped += contains(get(scratch / "metrics.jsonl"), "\"kind\":\"skipped\"");
    std::size_t count = 0;
    if (checkpoints_are_finite(scratch.path, count)) finite += count;
    checkpoints += count;
  }
  measures.all_of("nonfinite: checkpoints with only finite values", finite, checkpoints);
  measures.line("nonfinite: runs stopped, and runs with skipped steps",
                fmt::format("{} and {} of {}", stopped, skipped, runs), "some of each",
                stopped > 0 && skipped > 0);
}

/// The cost of the check without a fault, estimated as one test for each result and each gradient:
/// whether an observer is installed.
void check_is_cheap(Measures& measures) {
  Trial trial;
  const std::int64_t checks = trial.injector.results + trial.injector.gradients_seen;
  OpObserver* const observer = std::exchange(OpObserver::active, nullptr);
  std::int64_t t = 3;
  const double step = min_seconds(200, [&] { trial.step.run(trial.batch, ++t, 1e-3); });
  volatile bool any = false;
  constexpr int times = 1'000'000;
  const double seconds = min_seconds(10, [&] {
    for (int i = 0; i < times; ++i) any = any || OpObserver::active != nullptr;
  });
  OpObserver::active = observer;
  const double share = static_cast<double>(checks) * seconds / times / step;
  measures.line("nonfinite: cost of the check, share of a tiny step",
                fmt::format("{:.3f} %", 100 * share), "< 0.5 %", share < 0.005);
}

}  // namespace

int main(int count, char** arguments) {
  const bool full = count > 1 && std::strcmp(arguments[1], "--long") == 0;
  Measures measures;
  faults_are_caught(measures, full ? 2000 : 100);
  checkpoints_stay_finite(measures, full ? 400 : 24);
  check_is_cheap(measures);
  return measures.exit_status();
}
