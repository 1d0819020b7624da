#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "autograd/base/error.h"
#include "train/commands/commands.h"
#include "train/config/config.h"
#include "train/config/plugins.h"
#include "train/report/model_summary.h"
#include "train/run/run_folder.h"
#include "train/terminal/talk.h"

namespace heed {

namespace {

/// A line for each plugin: its file and what it registered.
std::string plugin_lines(const std::vector<Plugin>& plugins) {
  std::string text;
  for (const Plugin& plugin : plugins)
    text += fmt::format("plugin        {}: {}\n", plugin.file, fmt::join(plugin.names, ", "));
  return text;
}

nlohmann::json plugin_records(const std::vector<Plugin>& plugins) {
  nlohmann::json records = nlohmann::json::array();
  for (const Plugin& plugin : plugins)
    records.push_back({{"file", plugin.file}, {"sha256", plugin.sum}, {"names", plugin.names}});
  return records;
}

}  // namespace

int show_command(const ShowCommand& options) {
  if ((options.schema || options.config == "reference") && !options.overrides.empty()) {
    throw Error(Exit::usage, fmt::format("{}: show reference and --schema take no overrides",
                                         options.overrides.front()));
  }
  if (options.schema) {
    fmt::print("{}", json_schema());
    return 0;
  }
  if (options.config == "reference") {  // the page of all keys, printed from the field table
    fmt::print("{}", reference_yaml());
    return 0;
  }
  const bool is_run = std::filesystem::is_directory(options.config);
  const RunFolder run{options.config};
  const Config config = is_run ? read_run_config(run, options.overrides)
                               : read_config(options.config, options.overrides);
  for (const std::string& warning : config.warnings) tell("warning: " + warning);
  std::optional<Tokenizers> tokenizers;
  if (is_run) tokenizers = load_tokenizers(run.path, config);
  const ModelSummary summary = summarize_model(config, tokenizers);
  const std::vector<Plugin> plugins = plugins_of(config.plugins);
  if (options.json) {
    nlohmann::json record = summary.json();
    record["name"] = config.name;
    record["config"] = config_json(config);
    record["plugins"] = plugin_records(plugins);
    fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n{}{}", write_yaml(config), plugin_lines(plugins), summary.text());
  }
  return 0;
}

}  // namespace heed
