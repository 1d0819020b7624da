#pragma once
/// The command line: how a command adds itself, and the arguments that several commands share.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/config/trusted_plugins.h"

namespace heed {

/// What the process of a command does.
enum class Needs {
  files,  ///< reads and writes files
  model,  ///< also runs a model, with the best kernel of BLAS
  ranks,  ///< may also be one of several processes
};

struct CommandLine {
  CLI::App& app;
  std::vector<std::string> typed;  ///< all words, for run.json
  /// The function of the selected command, which parsing sets. Returns the exit status or throws
  /// Error.
  std::function<int()> job = nullptr;
  Needs needs = Needs::files;
};

/// Adds a subcommand whose job is `run`. `line` must outlive its app.
inline CLI::App* add_job(CommandLine& line, const char* name, Needs needs, const char* help,
                         const std::function<int()>& run) {
  CLI::App* const command = line.app.add_subcommand(name, help);
  command->callback([run, needs, &line] {
    line.job = run;
    line.needs = needs;
  });
  return command;
}

/// Adds a subcommand whose job calls `run` with the options that this function also returns; the
/// caller adds the arguments that set them.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> add_command(CommandLine& line, const char* name,
                                                           Needs needs, const char* help,
                                                           int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {add_job(line, name, needs, help, [options, run] { return run(*options); }), options};
}

// ---- arguments that several commands share --------------------------------------------------

/// The arguments of a command that reads a config.
struct ConfigArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

/// The arguments of a command that uses the weights of a run.
struct RunArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string weights;  ///< name for find_weights: best, last, average, a step, a folder, or empty
};

/// The arguments of a command that creates a run folder.
struct NewRunArguments {
  std::string to;  ///< the new run folder; empty: the command's default
  bool overwrite = false;
  std::vector<std::string> command;  ///< command line as typed, for run.json
};

/// The headings of option groups in the help.
inline constexpr const char* results = "Output";
inline constexpr const char* choices = "Choices";

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

/// Adds --trust-plugins, for a command that may read the config of a run.
inline void add_trust(CLI::App* command) {
  command
      ->add_flag_callback(
          "--trust-plugins", trust_all_plugins,
          "load the plugins that the config of a run names, and trust them from now on")
      ->group(choices);
}

/// Adds the arguments key=value, whose help mentions `example`, and --trust-plugins. add_config and
/// add_run first add the argument CONFIG or RUN.
inline void add_overrides(CLI::App* command, std::vector<std::string>& overrides,
                          const char* example) {
  add_argument(
      command, "OVERRIDE", overrides,
      fmt::format("key=value for each config key to change, such as threads=1 or {}", example));
  add_trust(command);
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

}  // namespace heed
