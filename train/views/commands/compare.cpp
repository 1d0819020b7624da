#include <fmt/format.h>

#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/config/fields.h"
#include "train/results/comparison.h"

namespace heed {

namespace {

struct CompareCommand {
  std::vector<std::string> runs;
  bool json = false, markdown = false, latex = false;
  std::string output = "-";
};

int compare_command(const CompareCommand& options) {
  std::vector<RunResult> results;
  for (const std::string& run : run_folders(options.runs)) {
    results.push_back(read_result(run));
    check_output(options.output, named_files(results.back().config));
  }
  const Comparison comparison(results);
  write_output(options.output, [&](const Sink& sink) {
    if (options.json) {
      sink(comparison.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else {
      sink(options.markdown ? comparison.markdown()
           : options.latex  ? comparison.latex()
                            : comparison.text());
    }
  });
  return 0;
}

}  // namespace

void add_compare(CommandLine& line) {
  const auto [command, options] = add_command<CompareCommand>(
      line, "compare", Needs::files, "metrics of several runs side by side", compare_command);
  add_argument(command, "RUN", options->runs,
               "run folders, or the folder of a sweep; each run is compared with the first")
      ->required();
  CLI::Option* const markdown =
      add_flag(command, results, "--markdown", options->markdown, "print the table as Markdown");
  CLI::Option* const latex = add_flag(command, results, "--latex", options->latex,
                                      "print the table for LaTeX's package booktabs")
                                 ->excludes(markdown);
  add_flag(command, results, "--json", options->json, "print the metrics as one JSON object")
      ->excludes(markdown)
      ->excludes(latex);
  add_choice(command, results, "--output", options->output, "FILE",
             "output file of the table (default: -, standard output)");
  add_trust(command);
  command->footer(
      "Runs that differ only in their seed share a row: mean ± standard deviation. The columns\n"
      "are the keys whose values differ, and the metrics on the test data or, if there was no\n"
      "test, in the last validation; heed eval measures those of a pruned or quantised copy. BLEU,\n"
      "chrF2 and ROUGE judge texts: they are omitted if train.best is another metric than these or\n"
      "the loss, ROUGE unless train.best is a ROUGE score; --json prints all metrics. Each row\n"
      "after the first is judged by whether its range (minimum to maximum) overlaps with that of\n"
      "the first row.\n"
      "Examples:\n"
      "  heed compare runs/pre-1 runs/pre-2 runs/post-1 runs/post-2\n"
      "  heed compare runs/copy-sweep");
}

}  // namespace heed
