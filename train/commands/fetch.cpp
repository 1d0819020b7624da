#include <fmt/format.h>

#include "train/commands/command_line.h"
#include "train/fetch/fetch.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

struct FetchCommand {
  std::string name;
  std::string to;    ///< folder of the data set; empty: data/<name>
  std::string from;  ///< folder of the files to copy; empty: download
};

int fetch_command(const FetchCommand& options) {
  const FetchSet& set = fetch_set(options.name);
  FetchOptions how = default_fetch_options(set);
  if (!options.to.empty()) how.to = options.to;
  if (!options.from.empty()) how.from = options.from;
  const FetchResult result = fetch(set, how, print_message);
  print_message(fmt::format("{}: files fetched: {}, already present: {}; folder: {}", set.name,
                            result.fetched, result.present, how.to.string()));
  return 0;
}

}  // namespace

void add_fetch(CommandLine& line) {
  const auto [command, options] = add_command<FetchCommand>(
      line, "fetch", Needs::files, "download a data set and verify its checksums", fetch_command);
  add_argument(command, "NAME", options->name, "multi30k, tinyshakespeare or mnist")->required();
  add_choice(command, results, "--to", options->to, "FOLDER",
             "folder of the data set (default: data/<name>)");
  add_choice(command, choices, "--from", options->from, "FOLDER",
             "copy the files from this folder instead of downloading them");
  command->footer("Example:\n  heed fetch multi30k --to data/multi30k");
}

}  // namespace heed
