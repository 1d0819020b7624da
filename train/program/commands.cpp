#include "train/program/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/config/fields.h"

namespace heed {

void add_commands(CommandLine& line) {
#define HEED_ADD(name) add_##name(line);
  HEED_COMMANDS(HEED_ADD)
#undef HEED_ADD
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string key_hint(std::string_view message) {
  const std::size_t dashes = message.find(": --");
  if (dashes == std::string_view::npos) return "";
  std::string name(message.substr(dashes + 4));
  name.resize(std::min(name.find_first_of(" ="), name.size()));
  std::ranges::replace(name, '-', '_');
  std::vector<std::string> keys = keys_named(name);
  for (std::string& key : keys) key += "=…";
  return keys.empty() ? ""
                      : fmt::format(" (a key of the config is set without dashes: {})",
                                    fmt::join(keys, " or "));
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string near = nearest(word, names);
  return fmt::format("{}: no such command{}\n(heed --help lists the commands)", shown(word),
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

}  // namespace heed
