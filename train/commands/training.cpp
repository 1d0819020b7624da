#include "train/commands/training.h"

#include <fmt/format.h>

#include <cmath>

#include "autograd/base/error.h"
#include "train/distributed/agreement.h"
#include "train/loop/rank_start.h"
#include "train/tasks/precision.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

void show_examples(Trainer& trainer, const Dataset& split, const Evaluation& e, RunLog& run_log) {
  const std::vector<std::string> lines = trainer.task().examples(trainer.loaded_model(), split, e);
  if (!lines.empty()) run_log.line("examples:");
  for (const std::string& line : lines) run_log.line("  " + line);
}

/// Prints the object of --json, which lacks metrics if the run has neither validation nor test
/// data.
void print_record(const std::optional<Evaluation>& e, const std::string& split,
                  const WeightsInfo& weights, const RunFolder& run) {
  nlohmann::json record = e ? e->json() : nlohmann::json::object();
  if (e) record["split"] = split;
  record.update(weights.json());
  record["run"] = run.path.string();
  print_text(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

int follow(World& world, const Config& config) {
  const ExperimentData data = load_data_together(&world, config);
  require_equal_ranks(world, config, data);
  std::optional<Replica> replica;
  together(&world, [&] { replica.emplace(config, data, &world); });
  describe(world, replica->team().threads(), config.train.shards);
  return replica->follow();
}

void make_trainer(std::optional<Trainer>& trainer, const Config& config, const RunFolder& run,
                  const ExperimentData& data, RunLog& run_log, World* world) {
  if (world != nullptr) require_equal_ranks(*world, config, data);
  together(world, [&] { trainer.emplace(config, run, data, run_log, world); });
}

void log_ranks(World* world, Trainer& trainer, const Config& config, RunLog& run_log) {
  if (world == nullptr) return;
  for (const std::string& line : describe(*world, trainer.team().threads(), config.train.shards))
    run_log.line(line);
}

void explain_precision(const Config& config, RunLog& run_log) {
  for (const std::string& note :
       {training_precision_note(config.train.precision),
        bf16_note(config.decode.precision == DecodePrecision::bf16, "decode.precision")}) {
    if (!note.empty()) run_log.line(note);
  }
}

int logged(RunLog& run_log, const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    run_log.end_progress();
    try {
      run_log.log(fmt::format("ended by an error: {}", e.what()));
    } catch (const std::exception&) {  // the disk may be full; the first error is reported
    }
    throw;
  }
}

int train_and_test(Trainer& trainer, const RunFolder& run, const ExperimentData& data,
                   RunLog& run_log, bool json) {
  if (const int signal = trainer.train(); signal != 0) {
    run_log.line(fmt::format("stopped by {}; to continue: heed resume {}", signal_text(signal),
                             run.path.string()));
    trainer.end(128 + signal);
    return 128 + signal;
  }
  const WeightsInfo weights = trainer.choose_weights();
  const std::optional<Evaluation> e = trainer.final_evaluation();
  const bool test = !data.test.empty();
  if (json) print_record(e, test ? "test" : "valid", weights, run);
  if (e) {
    run_log.line(fmt::format("{}  {}", test ? "test" : "valid", e->text()));
    if (const auto cut = e->json().value("cut_outputs", std::int64_t{0}); cut > 0)
      run_log.line(fmt::format(
          "note: {} of {} outputs were cut at their maximum length (decode.max_length, model.max_positions)",
          cut, e->outputs.size()));
    show_examples(trainer, test ? data.test : data.valid, *e, run_log);
    if (!std::isfinite(e->loss())) {
      throw Error(Exit::non_finite,
                  "the loss of the {} split is not finite: the weights are unusable; "
                  "the run is in {}",
                  test ? "test" : "validation", run.path.string());
    }
  }
  run_log.line(fmt::format("the run is in {}", run.path.string()));
  trainer.end(0);
  return 0;
}

}  // namespace heed
