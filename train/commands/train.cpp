#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "train/commands/commands.h"
#include "train/distributed/agreement.h"
#include "train/distributed/launch.h"
#include "train/loop/rank_start.h"
#include "train/loop/trainer.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"

namespace heed {

namespace {

/// A number with its noun: "1 thread", "2 threads".
std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

void show_examples(Trainer& trainer, const Dataset& split, const Evaluation& e, RunLog& run_log) {
  const std::vector<std::string> lines = trainer.task().examples(trainer.loaded_model(), split, e);
  if (!lines.empty()) run_log.line("examples:");
  for (const std::string& line : lines) run_log.line("  " + line);
}

void explain_precision(const Config& config, RunLog& run_log) {
  for (const std::string& note :
       {bf16_note(config.train.precision == Precision::bf16, "train.precision"),
        bf16_note(config.decode.precision == DecodePrecision::bf16, "decode.precision")}) {
    if (!note.empty()) run_log.line(note);
  }
}

/// Runs `work`. If it throws, the message is also written to the log.
template <class Work>
int logged(RunLog& run_log, const Work& work) {
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

/// Prints the object of --json, which lacks metrics if the run has neither validation nor test
/// data.
void print_record(const std::optional<Evaluation>& e, const std::string& split,
                  const WeightsInfo& weights, const RunFolder& run) {
  nlohmann::json record = e ? e->json() : nlohmann::json::object();
  if (e) record["split"] = split;
  record.update(weights.json());
  record["run"] = run.path.string();
  fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Trains from the trainer's current state to the end and evaluates the chosen weights. Returns the
/// exit status: 128 + the number of the signal that stopped the training, else 0. Throws
/// Error(non_finite) if the final loss is not finite.
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

bool is_first(const World* world) { return world == nullptr || world->first(); }

/// Runs a rank other than rank 0, with the config that it has read or received.
int follow(World& world, const Config& config) {
  const ExperimentData data = load_data_together(&world, config);
  require_equal_ranks(world, config, data);
  std::optional<Replica> replica;
  together(&world, [&] { replica.emplace(config, data, &world); });
  describe(world, replica->team().threads(), config.train.shards);
  return replica->follow();
}

/// Builds the trainer of rank 0 or of a run of one process. Throws on all ranks if any rank fails,
/// for example because the model does not fit into its memory.
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

int resume_run(const Config& config, const RunFolder& run, const ResumeCommand& options,
               RunLog& run_log, World* world) {
  const std::vector<std::string> changed =
      changes_on_resume(read_run_config(run, {}, PluginUse::leave), config);
  for (const std::string& warning : config.warnings) run_log.line("warning: " + warning);
  for (const std::string& note : check_files(run)) run_log.line("warning: " + note);
  const Tokenizers tokenizers = load_tokenizers(run.path, config);
  const ExperimentData data = load_data_together(world, config, &tokenizers);
  for (const std::string& change : environment_changes(run, config, data.sums)) {
    run_log.line(fmt::format(
        "warning: the environment of the run has changed, so the result may differ bitwise: {}",
        change));
  }
  explain_precision(config, run_log);
  std::optional<Trainer> trainer;
  make_trainer(trainer, config, run, data, run_log, world);
  log_ranks(world, *trainer, config, run_log);
  trainer->restore();
  for (const std::string& change : changed)
    run_log.line(fmt::format("note: {}; recorded in the run's config.yaml", change));
  if (!changed.empty()) adopt_config(run, config, data.sums);
  return train_and_test(*trainer, run, data, run_log, options.json);
}

RunFolder folder_of(const TrainCommand& options, const Config& config) {
  return {options.to.empty() ? std::filesystem::path("runs") / config.name
                             : std::filesystem::path(options.to)};
}

/// Throws Error(usage) or Error(locked) if a new run cannot start in this folder.
void check_free(const RunFolder& run, bool overwrite) {
  RunLock::refuse_if_held(run.path);
  overwrite ? refuse_foreign_folder(run) : refuse_existing_run(run);
}

}  // namespace

int train_command(const TrainCommand& options) {
  std::signal(SIGUSR1, SIG_IGN);  // ignored until the trainer can save a checkpoint
  World* const world = process_world("train");
  if (!is_first(world)) silence();
  const Config config = together(world, [&] {
    if (std::filesystem::is_directory(options.config)) {
      throw Error(Exit::usage,
                  "{} is a folder, but CONFIG must be a YAML file; heed resume continues a run",
                  options.config);
    }
    if (world != nullptr && std::filesystem::exists(options.config) &&
        !std::filesystem::is_regular_file(options.config)) {
      throw Error(Exit::usage,
                  "{} is not a regular file; every rank must be able to read the config",
                  options.config);
    }
    Config found = read_config(options.config, options.overrides);
    if (is_first(world)) check_free(folder_of(options, found), options.overwrite);
    return found;
  });
  if (!is_first(world)) return follow(*world, config);
  const RunFolder run = folder_of(options, config);
  RunLog run_log;
  for (const std::string& warning : config.warnings) run_log.line("warning: " + warning);
  // Loads the data and builds the model before creating the run's folder, so that a failure leaves
  // no folder.
  const ExperimentData data = load_data_together(world, config);
  std::optional<Trainer> trainer;
  make_trainer(trainer, config, run, data, run_log, world);
  trainer->initialise();
  const RunLock lock = lock_new_run(run, options.overwrite);
  begin_run(run, config, data.tokenizers, data.sums, options.command);
  run_log.log_to(run.log());
  run_log.line(trainer->task().describe(data));
  std::int64_t values = 0;
  for (const NamedTensor& p : trainer->model().parameters()) values += p.tensor.size();
  run_log.line(fmt::format("model: {} parameters; {}, {}; run folder {}",
                           format_quantity(static_cast<double>(values)),
                           counted(trainer->team().threads(), "thread"),
                           counted(config.train.shards, "shard"), run.path.string()));
  log_ranks(world, *trainer, config, run_log);
  explain_precision(config, run_log);
  return logged(run_log,
                [&] { return train_and_test(*trainer, run, data, run_log, options.json); });
}

int resume_command(const ResumeCommand& options) {
  std::signal(SIGUSR1, SIG_IGN);
  World* const world = process_world("resume");
  if (!is_first(world)) {  // only rank 0 uses the run's folder
    silence();
    require_all(*world, {});
    const std::string yaml = world->broadcast(std::string());
    return follow(*world, parse_config(yaml, "config.yaml", {}, true));
  }
  const RunFolder run{options.run};
  std::optional<RunLock> lock;
  const Config config = together(world, [&] {
    if (!RunLock::has_mark(run.path, false)) {
      try {
        require_run(run, options.overrides);
      } catch (const Error&) {
        // Another process may have acquired the lock since has_mark() and be replacing the run.
        if (!RunLock::has_mark(run.path, false)) throw;
      }
    }
    lock.emplace(run.path);  // locks first, because a run that is being replaced has no config
    return read_run_config(run, options.overrides);
  });
  if (world != nullptr) world->broadcast(write_yaml(config));
  RunLog run_log;
  run_log.log_to(run.log());
  return logged(run_log, [&] { return resume_run(config, run, options, run_log, world); });
}

}  // namespace heed
