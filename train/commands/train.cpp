#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <optional>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/derived_run.h"
#include "train/commands/training.h"
#include "train/distributed/agreement.h"
#include "train/exchange/import.h"
#include "train/loop/rank_start.h"
#include "train/results/comparison.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

/// A number with its noun: "1 thread", "2 threads".
std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
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

bool is_import_of(const RunFolder& run, const std::string& from) {
  if (!path_exists(run.metrics())) return false;
  const std::vector<nlohmann::json> records = read_metrics(run);
  return !records.empty() && records[0].value("kind", "") == "imported" &&
         records[0].value("from", "") == from;
}

/// If model.init_from is a folder of transformers, imports it as a run beside the new one, which then
/// has its place.
void import_initial_weights(Config& config, const TrainCommand& options, const World* world) {
  const std::string from = config.train.init_from;
  if (from.empty() || !is_huggingface_folder(from)) return;
  if (world != nullptr)
    throw Error(Exit::usage,
                "model.init_from: {} is a folder of transformers; for several processes, import it "
                "first: heed import {} --run RUN",
                from, from);
  const std::string to = without_last_slash(folder_of(options, config).path.string()) + "-init";
  config.train.init_from = to;
  if (path_exists(to)) {
    if (!is_import_of({to}, from))
      throw Error(
          Exit::usage,
          "model.init_from: {} would be imported into {}, which exists and is something else: "
          "choose another folder with --run, or move it away",
          from, to);
    // An earlier call, which may have been refused for another reason, has imported it.
    if (!options.overwrite) {
      print_message(fmt::format(
          "model.init_from: {} has been imported into {}; --overwrite imports it again", from, to));
      return;
    }
  }
  const DerivedRun run{from, {to}, options.overwrite, options.command};
  check_destination(run);
  import_run(run);
  print_message(fmt::format("model.init_from: {} is imported into {}", from, to));
}

}  // namespace

TrainedRun train_new_run(const TrainCommand& options) {
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
    if (is_first(world)) {
      check_free(folder_of(options, found), options.overwrite);
      import_initial_weights(found, options, world);
    }
    return found;
  });
  const RunFolder run = folder_of(options, config);
  if (!is_first(world)) return {follow(*world, config), run};
  RunLog run_log;
  for (const std::string& warning : config.warnings) run_log.line("warning: " + warning);
  // Loads the data and builds the model before creating the run's folder, so that a failure leaves
  // no folder.
  const ExperimentData data = load_data_together(world, config);
  std::optional<Trainer> trainer;
  make_trainer(trainer, config, run, data, run_log, world);
  trainer->initialise();
  const RunLock lock = lock_new_run(run, options.overwrite);
  trainer->set_lock(lock);
  begin_run(run, config, data.tokenizers, data.sums, options.command);
  run_log.log_to(run.log());
  for (const std::string& warning : config.warnings) run_log.log("warning: " + warning);
  run_log.line(trainer->task().describe(data));
  for (const std::string& warning : data.warnings) run_log.line("warning: " + warning);
  std::int64_t values = 0;
  for (const NamedTensor& p : trainer->model().parameters()) values += p.tensor.size();
  run_log.line(fmt::format("model: {} parameters; {}, {}; run folder {}",
                           format_quantity(static_cast<double>(values)),
                           counted(trainer->team().threads(), "thread"),
                           counted(config.train.shards, "shard"), run.path.string()));
  log_ranks(world, *trainer, config, run_log);
  explain_precision(config, run_log);
  return {
      logged(run_log, [&] { return train_and_test(*trainer, run, data, run_log, options.json); }),
      run};
}

void add_train(CommandLine& line) {
  const auto [command, options] = add_command<TrainCommand>(
      line, "train", Needs::ranks, "train a model and print its final metrics",
      +[](const TrainCommand& given) {
        std::signal(SIGUSR1, SIG_IGN);  // ignored until the trainer can save a checkpoint
        return train_new_run(given).status;
      });
  options->command = line.typed;
  add_config(command, *options, "train.steps=200");
  add_new_run(command, *options, "run folder (default: runs/<name>)");
  add_json(command, options->json, "the final metrics");
  command->footer(
      "Progress goes to standard error. Ctrl-C saves a checkpoint and stops the run; heed resume\n"
      "continues it.\n"
      "Examples:\n"
      "  heed train configs/dates.yaml\n"
      "  heed train configs/copy.yaml --run /tmp/copy train.steps=200 'model.layers={encoder: 1, "
      "decoder: 2}'");
}

}  // namespace heed
