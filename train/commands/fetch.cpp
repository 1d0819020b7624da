#include <fmt/format.h>

#include "train/commands/commands.h"
#include "train/fetch/fetch.h"
#include "train/terminal/run_log.h"

namespace heed {

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

}  // namespace heed
