#include "train/sweep/sweep.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/view_file.h"
#include "train/views/report/runs/report_page.h"

namespace heed {

namespace {

struct SweepCommand {
  std::string config;
  std::vector<std::string> arguments;  ///< key=a,b,c and key=value
  std::optional<std::int64_t> seeds, random;
  bool halving = false;
  std::int64_t jobs = 1;  ///< number of simultaneous runs
  std::string folder;     ///< empty: runs/<name>-sweep
  bool json = false;
};

/// Prints the comparison of the finished runs and writes the report.
void show_results(const SweepCommand& options, const SweepOptions& sweep,
                  const std::vector<std::string>& finished) {
  std::vector<History> histories;
  std::vector<RunResult> results;
  for (const std::string& run : finished) {
    histories.push_back(read_history(run));
    results.push_back(histories.back().result);
  }
  const Comparison comparison(results);
  if (options.json) {
    print_text(comparison.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
               "\n");
  } else {
    print_text(comparison.text());
  }
  write_view(sweep.folder / "report.html", report_page(histories, {}));
}

int sweep_command(const SweepCommand& options) {
  SweepPlan plan = read_sweep(options.config);
  add_arguments(plan, options.arguments);
  if (options.seeds) plan.seeds = *options.seeds;
  if (options.random) plan.random = *options.random;
  plan.halving |= options.halving;
  const std::string folder =
      options.folder.empty()
          ? fmt::format("runs/{}-sweep", read_config(options.config, plan.overrides).name)
          : options.folder;
  const SweepOptions sweep{options.config, folder, options.jobs, plan.halving};
  const std::vector<SweepMember> members = members_of(plan, options.config);
  const RunLock lock = claim_folder(sweep, members);
  print_message(fmt::format("heed: sweep in {}, number of runs: {}", folder, members.size()));
  const SweepResult result = run_sweep(sweep, members);
  if (result.signal != 0) {
    print_message(fmt::format("heed: stopped; the same command continues the sweep in {}", folder));
    return 128 + result.signal;
  }
  for (const FailedRun& run : result.failed)
    print_message(fmt::format("heed: {} failed: {}", run.name, run.reason));
  if (!result.finished.empty()) show_results(options, sweep, result.finished);
  return result.failed.empty() ? 0 : static_cast<int>(Exit::failed);
}

}  // namespace

void add_sweep(CommandLine& line) {
  const auto [command, options] = add_command<SweepCommand>(
      line, "sweep", Needs::model, "train a config with several values of its keys", sweep_command);
  add_argument(command, "CONFIG", options->config, "the experiment, a YAML file")->required();
  add_argument(command, "VALUES", options->arguments,
               "key=values to try, such as model.norm=pre,post; key=value applies to every run");
  add_choice(command, choices, "--seeds", options->seeds, "N",
             "number of runs per point, with consecutive seeds that start at the config's seed")
      ->check(CLI::Range(1, 10'000));
  add_choice(command, choices, "--random", options->random, "N",
             "train N random points of the grid instead of all")
      ->check(CLI::Range(1, 10'000));
  add_flag(command, choices, "--halving", options->halving,
           "successive halving: train all points for part of train.steps, keep the better "
           "half, and repeat");
  add_choice(command, choices, "--jobs", options->jobs, "N",
             "number of simultaneous runs, which share the processors (default: 1)")
      ->check(CLI::Range(1, 1024));
  add_choice(command, results, "--run", options->folder, "FOLDER",
             "folder of the runs (default: runs/<name>-sweep)");
  add_json(command, options->json, "the comparison");
  add_trust(command);
  command->footer(
      "FOLDER contains one run folder per run. The same command continues an interrupted sweep:\n"
      "finished runs remain unchanged, and all others are started or resumed. A failed run does\n"
      "not stop the sweep. At the end, heed prints the table of heed compare and writes\n"
      "FOLDER/report.html. CONFIG may also contain the values:\n"
      "  sweep: {model.norm: [pre, post], seeds: 3}\n"
      "Examples:\n"
      "  heed sweep configs/reverse.yaml model.heads=1,2,4 --seeds 3 --jobs 2\n"
      "  heed sweep configs/copy.yaml optim.lr=3e-4,1e-3,3e-3,1e-2 --halving train.steps=800");
}

}  // namespace heed
