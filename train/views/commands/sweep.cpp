#include "train/sweep/sweep.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/commands/commands.h"
#include "train/terminal/run_log.h"
#include "train/views/report/runs/report_page.h"

namespace heed {

namespace {

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
    fmt::print("{}\n",
               comparison.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", comparison.text());
  }
  const std::filesystem::path page = sweep.folder / "report.html";
  write_file_durably(page, report_page(histories, {}));
  print_message(fmt::format("heed: report written to {}", page.string()));
}

}  // namespace

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
  claim_folder(sweep, members);
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

}  // namespace heed
