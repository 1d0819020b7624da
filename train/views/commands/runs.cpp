#include <fmt/format.h>

#include <ctime>

#include "train/commands/commands.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/run_list.h"

namespace heed {

int runs_command(const RunsCommand& options) {
  const std::vector<RunLine> runs = list_runs(options.folder);
  if (options.json) {
    fmt::print("{}\n",
               json_of(runs).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (runs.empty()) {
    print_note(
        fmt::format("{}: no runs in this folder or up to four levels below it", options.folder));
  } else {
    fmt::print("{}", text_of(runs, std::time(nullptr)));
  }
  return 0;
}

}  // namespace heed
