#include <fmt/format.h>

#include <ctime>

#include "train/commands/command_line.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/run_list.h"

namespace heed {

namespace {

struct RunsCommand {
  std::string folder = "runs";
  bool json = false;
};

int runs_command(const RunsCommand& options) {
  const std::vector<RunLine> runs = list_runs(options.folder);
  if (options.json) {
    print_text(json_of(runs).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (runs.empty()) {
    print_note(
        fmt::format("{}: no runs in this folder or up to four levels below it", options.folder));
  } else {
    print_text(text_of(runs, std::time(nullptr)));
  }
  return 0;
}

}  // namespace

void add_runs(CommandLine& line) {
  const auto [command, options] =
      add_command<RunsCommand>(line, "runs", Needs::files,
                               "list the runs below a folder, the most recent last", runs_command);
  add_argument(command, "FOLDER", options->folder, "folder to search (default: runs)");
  add_json(command, options->json, "the list");
  command->footer(
      "The figure is the metric that selects the best checkpoint, on the test data or, if there\n"
      "was no test, in the last validation. heed resume continues a stopped run.\n"
      "Examples:\n"
      "  heed runs\n"
      "  heed runs --json | jq -r '.runs[] | select(.state == \"stopped\") | .run'");
}

}  // namespace heed
