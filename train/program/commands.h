#pragma once
/// All commands.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "train/commands/command_line.h"

namespace heed {

/// The commands, in the order of the help. add_NAME is defined in train/commands/NAME.cpp, in
/// train/views/commands/NAME.cpp for a command that only shows data, or in
/// train/program/help/help_commands.cpp.
#define HEED_COMMANDS(COMMAND) \
  COMMAND(train)               \
  COMMAND(resume)              \
  COMMAND(sweep)               \
  COMMAND(eval)                \
  COMMAND(generate)            \
  COMMAND(score)               \
  COMMAND(gradcheck)           \
  COMMAND(bench)               \
  COMMAND(prune)               \
  COMMAND(quantize)            \
  COMMAND(export)              \
  COMMAND(import)              \
  COMMAND(verify)              \
  COMMAND(fetch)               \
  COMMAND(show)                \
  COMMAND(attention)           \
  COMMAND(trace)               \
  COMMAND(compare)             \
  COMMAND(report)              \
  COMMAND(plot)                \
  COMMAND(runs)                \
  COMMAND(course)              \
  COMMAND(help)                \
  COMMAND(completion)          \
  COMMAND(complete)            \
  COMMAND(man)

#define HEED_DECLARE(name) void add_##name(CommandLine& line);
HEED_COMMANDS(HEED_DECLARE)
#undef HEED_DECLARE

/// Adds all commands. Parsing sets `line`, which must outlive line.app.
void add_commands(CommandLine& line);

/// The subcommands that the help lists.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// The config keys whose last part is the name of an unknown option of CLI11's message, as a hint:
/// " (a key of the config is set without dashes: optim.lr=…)"; empty if there is none.
std::string key_hint(std::string_view message);

/// The message for a word that is not a command.
std::string unknown_command(const CLI::App& app, const std::string& word);

}  // namespace heed
