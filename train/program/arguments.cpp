#include "train/program/arguments.h"

#include <fmt/format.h>

namespace heed::arguments {

void add_overrides(CLI::App* command, std::vector<std::string>& overrides, const char* example) {
  add_argument(
      command, "OVERRIDE", overrides,
      fmt::format("key=value for each config key to change, such as threads=1 or {}", example));
}

void add_config(CLI::App* command, std::string& config, std::vector<std::string>& overrides,
                const char* example) {
  add_argument(command, "CONFIG", config, "the experiment, a YAML file")->required();
  add_overrides(command, overrides, example);
}

void add_run(CLI::App* command, std::string& run, std::vector<std::string>& overrides,
             const char* example) {
  add_argument(command, "RUN", run, "run folder, such as runs/dates")->required();
  add_overrides(command, overrides, example);
}

void add_weights(CLI::App* command, std::string& weights) {
  add_choice(command, choices, "--weights", weights, "W",
             "best, last, average, a step, or a folder (default: average, else best, else last)");
}

CLI::Option* add_new_run(CLI::App* command, std::string& folder, bool& overwrite,
                         const char* help) {
  CLI::Option* const option = add_choice(command, results, "--run", folder, "FOLDER", help)
                                  ->check([](const std::string& given) {
                                    return given.empty() ? "expected a folder" : "";
                                  });
  add_flag(command, results, "--overwrite", overwrite, "replace the run in that folder");
  return option;
}

void add_json(CLI::App* command, bool& json, const char* what) {
  add_flag(command, results, "--json", json, fmt::format("print {} as one JSON object", what));
}

}  // namespace heed::arguments
