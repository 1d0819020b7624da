#pragma once
/// The command line: the subcommands, their arguments and their help.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace heed {

/// The function to call after the whole command line has been parsed. Returns the exit status.
using Job = std::function<int()>;

/// Adds all subcommands; parsing then sets `job`, which must outlive `app`. `typed` is the whole
/// command line, for run.json.
void add_commands(CLI::App& app, Job& job, const std::vector<std::string>& typed);

/// The subcommands that the help lists.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// The message for a word that is not a command.
std::string unknown_command(const CLI::App& app, const std::string& word);

}  // namespace heed
