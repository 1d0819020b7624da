#include <fmt/format.h>

#include <csignal>
#include <optional>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/training.h"
#include "train/distributed/agreement.h"
#include "train/loop/rank_start.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"

namespace heed {

namespace {

int continue_run(const Config& config, const RunFolder& run, const RunLock& lock,
                 const ResumeCommand& options, RunLog& run_log, World* world) {
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
  for (const std::string& warning : data.warnings) run_log.line("warning: " + warning);
  explain_precision(config, run_log);
  std::optional<Trainer> trainer;
  make_trainer(trainer, config, run, data, run_log, world);
  log_ranks(world, *trainer, config, run_log);
  trainer->set_lock(lock);
  trainer->restore();
  for (const std::string& change : changed)
    run_log.line(fmt::format("note: {}; recorded in the run's config.yaml", change));
  if (!changed.empty()) adopt_config(run, config, data.sums);
  return train_and_test(*trainer, run, data, run_log, options.json);
}

}  // namespace

int resume_run(const ResumeCommand& options) {
  World* const world = process_world("resume");
  const RunFolder run{options.run};
  if (!is_first(world)) {  // only rank 0 uses the run's folder
    silence();
    require_all(*world, {});
    const std::string yaml = world->broadcast(std::string());
    return follow(*world, together(world, [&] {
      return parse_config(yaml, run.config().string(), options.overrides, true);
    }));
  }
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
  if (world != nullptr) {
    world->broadcast(write_yaml(config));
    require_all(*world, {});  // the other ranks have read it, and loaded its plugins
  }
  RunLog run_log;
  run_log.log_to(run.log());
  return logged(run_log, [&] { return continue_run(config, run, *lock, options, run_log, world); });
}

void add_resume(CommandLine& line) {
  const auto [command, options] = add_command<ResumeCommand>(
      line, "resume", Needs::ranks, "continue from the newest valid checkpoint",
      +[](const ResumeCommand& given) {
        std::signal(SIGUSR1, SIG_IGN);  // ignored until the trainer can save a checkpoint
        return resume_run(given);
      });
  add_run(command, options->run, options->overrides, "train.steps=4000");
  add_json(command, options->json, "the final metrics");
  command->footer(
      "Examples:\n"
      "  heed resume runs/dates\n"
      "  heed resume runs/dates train.steps=4000\n"
      "The keys on the command line, except threads, are written to the run's config.yaml.");
}

}  // namespace heed
