#pragma once
/// Arguments shared by several commands.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/program/command_line.h"

namespace heed::arguments {

/// The headings of option groups in the help.
inline constexpr const char* results = "Output";
inline constexpr const char* choices = "Choices";

/// Adds a subcommand whose job calls `run` with the options that this function also returns; the
/// caller adds the arguments that set them.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(CLI::App& app, Job& job,
                                                           const char* name, const char* help,
                                                           int (*run)(const Options&)) {
  CLI::App* const command = app.add_subcommand(name, help);
  const auto options = std::make_shared<Options>();
  command->callback([options, run, &job] { job = [options, run] { return run(*options); }; });
  return {command, options};
}

/// Adds a positional argument.
template <class T>
CLI::Option* add_argument(CLI::App* command, const char* name, T& value, const std::string& help) {
  return command->add_option(name, value, help)->type_name("");
}

/// Adds an option with one value, listed under `group`; `type` names the value.
template <class T>
CLI::Option* add_choice(CLI::App* command, const char* group, const char* name, T& value,
                        const char* type, const char* help) {
  return command->add_option(name, value, help)->type_name(type)->group(group);
}
inline CLI::Option* add_flag(CLI::App* command, const char* group, const char* name, bool& value,
                             const std::string& help) {
  return command->add_flag(name, value, help)->group(group);
}

/// Adds the arguments key=value, whose help mentions `example`. add_config and add_run first add
/// the argument CONFIG or RUN.
void add_overrides(CLI::App* command, std::vector<std::string>& overrides, const char* example);
void add_config(CLI::App* command, std::string& config, std::vector<std::string>& overrides,
                const char* example);
void add_run(CLI::App* command, std::string& run, std::vector<std::string>& overrides,
             const char* example);
/// Adds --weights.
void add_weights(CLI::App* command, std::string& weights);
/// Adds --run and --overwrite for a command that creates a run folder. Returns the option --run.
CLI::Option* add_new_run(CLI::App* command, std::string& folder, bool& overwrite, const char* help);
/// Adds --json; `what` names the printed content in the help.
void add_json(CLI::App* command, bool& json, const char* what);

}  // namespace heed::arguments
