#include <fmt/format.h>

#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/results/comparison.h"

namespace heed {

int compare_command(const CompareCommand& options) {
  std::vector<RunResult> results;
  for (const std::string& run : options.runs) {
    results.push_back(read_result(run));
    refuse_output_over_input(options.output, files_of({run}));
  }
  const Comparison comparison(results);
  write_output(options.output, [&](const Sink& sink) {
    if (options.json) {
      sink(comparison.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else {
      sink(options.markdown ? comparison.markdown() : comparison.text());
    }
  });
  return 0;
}

}  // namespace heed
