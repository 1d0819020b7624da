#pragma once
/// Arguments shared by several commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/commands/commands.h"
#include "train/program/command_line.h"

namespace heed::arguments {

/// The headings of option groups in the help.
inline constexpr const char* results = "Output";
inline constexpr const char* choices = "Choices";

/// Adds a subcommand whose job is `run`.
template <class Run>
CLI::App* add_job(CLI::App& app, Job& job, const char* name, const char* help, const Run& run) {
  CLI::App* const command = app.add_subcommand(name, help);
  command->callback([run, &job] { job = run; });
  return command;
}

/// Adds a subcommand whose job calls `run` with the options that this function also returns; the
/// caller adds the arguments that set them.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(CLI::App& app, Job& job,
                                                           const char* name, const char* help,
                                                           int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {add_job(app, job, name, help, [options, run] { return run(*options); }), options};
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
inline void add_overrides(CLI::App* command, std::vector<std::string>& overrides,
                          const char* example) {
  add_argument(
      command, "OVERRIDE", overrides,
      fmt::format("key=value for each config key to change, such as threads=1 or {}", example));
}
inline void add_config(CLI::App* command, ConfigArguments& options, const char* example) {
  add_argument(command, "CONFIG", options.config, "the experiment, a YAML file")->required();
  add_overrides(command, options.overrides, example);
}
inline void add_run(CLI::App* command, std::string& run, std::vector<std::string>& overrides,
                    const char* example) {
  add_argument(command, "RUN", run, "run folder, such as runs/dates")->required();
  add_overrides(command, overrides, example);
}

/// Adds --weights.
inline void add_weights(CLI::App* command, std::string& weights) {
  add_choice(command, choices, "--weights", weights, "W",
             "best, last, average, a step, or a folder (default: average, else best, else last)");
}

/// Adds --run and --overwrite for a command that creates a run folder. Returns the option --run.
inline CLI::Option* add_new_run(CLI::App* command, NewRunArguments& options, const char* help) {
  CLI::Option* const option = add_choice(command, results, "--run", options.to, "FOLDER", help)
                                  ->check([](const std::string& given) {
                                    return given.empty() ? "expected a folder" : "";
                                  });
  add_flag(command, results, "--overwrite", options.overwrite, "replace the run in that folder");
  return option;
}

/// Adds --json; `what` names the printed content in the help.
inline void add_json(CLI::App* command, bool& json, const char* what) {
  add_flag(command, results, "--json", json, fmt::format("print {} as one JSON object", what));
}

}  // namespace heed::arguments
