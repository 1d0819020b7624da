#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "autograd/base/error.h"
#include "train/commands/commands.h"
#include "train/config/config.h"
#include "train/report/model_summary.h"
#include "train/run/run_folder.h"
#include "train/terminal/talk.h"

namespace heed {

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
  if (is_run) tokenizers = Tokenizers::load(run.path, config.tokenizer.kind);
  const ModelSummary summary = summarize_model(config, tokenizers);
  if (options.json) {
    nlohmann::json record = summary.json();
    record["name"] = config.name;
    record["config"] = config_json(config);
    fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n{}", write_yaml(config), summary.text());
  }
  return 0;
}

}  // namespace heed
