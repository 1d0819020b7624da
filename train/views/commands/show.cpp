#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/config/config.h"
#include "train/config/fields.h"
#include "train/config/plugins.h"
#include "train/loop/augment.h"
#include "train/loop/step.h"
#include "train/run/run_folder.h"
#include "train/tasks/task.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/view_file.h"
#include "train/views/report/model_drawing.h"
#include "train/views/report/model_summary.h"
#include "train/views/report/tape_drawing.h"

namespace heed {

namespace {

/// `config` may also be a run folder.
struct ShowCommand : ConfigArguments {
  bool schema = false;       ///< print the JSON Schema of configs instead
  bool tape = false;         ///< draw the tape of a training step
  std::string output = "-";  ///< output file; .svg: a drawing
};

/// One line per plugin: its file and the names that it registered.
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

/// Draws the tape of a training step on one sequence of average length.
std::string drawn_tape(const Config& config, const ModelSummary& summary) {
  const VocabularySizes& sizes = summary.vocabulary.sizes;
  const std::unique_ptr<Task> task = make_task(config);
  const std::unique_ptr<Model> model = build_to_train(config, sizes);
  const auto length = [&](double tokens) {
    return std::max<std::int64_t>(std::llround(tokens / std::max(summary.work.sequences, 1.0)), 1);
  };
  std::int64_t token = 0;  // the token ids do not affect the tape
  const Batch batch = task->random_batch(
      1, length(summary.work.source_tokens), length(summary.work.target_tokens), sizes,
      [&](std::int64_t known) { return static_cast<std::int32_t>(token++ % known); });
  const StepOptions options = step_options(config);
  const std::optional<Batch> changed = augmented(batch, 0, 1, options);
  const Tensor loss = shard_loss(*model, changed ? *changed : batch, 0, 1, 1.0, options, nullptr);
  const auto rows = [](const Side& side, std::string_view of) {
    return side.offsets.empty() ? "" : fmt::format(", {} {} rows", side.rows(), of);
  };
  return tape_drawing(
      loss, model->parameters(),
      {fmt::format("{}: the tape of a training step on one sequence{}{}", config.name,
                   rows(batch.source, "source"), rows(batch.target, "target"))});
}

std::string shown_text(const ShowCommand& options, const Config& config) {
  std::optional<Tokenizers> tokenizers;
  if (std::filesystem::is_directory(options.config))
    tokenizers = load_tokenizers(options.config, config);
  const ModelSummary summary = summarize_model(config, tokenizers);
  if (options.tape) return drawn_tape(config, summary);
  if (names_drawing(options.output)) return model_drawing(config, summary.vocabulary);
  const std::vector<Plugin> plugins = plugins_of(config.plugins);
  if (!options.json)
    return fmt::format("{}\n{}{}", write_effective_yaml(config), plugin_lines(plugins),
                       summary.text());
  nlohmann::json record = summary.json();
  record["name"] = config.name;
  record["config"] = config_json(config);
  record["plugins"] = plugin_records(plugins);
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Reads the config from a YAML file or a run folder. Throws Error(usage) if the output would
/// overwrite an input.
Config shown_config(const ShowCommand& options) {
  if (!std::filesystem::is_directory(options.config)) {
    check_output(options.output, {options.config});
    return read_config(options.config, options.overrides);
  }
  return read_run_config(RunFolder{options.config}, options.overrides);
}

std::string drawn_model(const ShowCommand& options) {
  if (options.schema) return json_schema();
  if (options.config == "reference") return reference_yaml();  // printed from the field table
  const Config config = shown_config(options);
  check_output(options.output, named_files(config));
  for (const std::string& warning : config.warnings) print_message("warning: " + warning);
  return shown_text(options, config);
}

int show_command(const ShowCommand& options) {
  const bool fixed = options.schema || options.config == "reference",
             drawing = names_drawing(options.output);
  if (fixed && !options.overrides.empty()) {
    throw Error(Exit::usage, "{}: show reference and --schema accept no overrides",
                options.overrides.front());
  }
  if (!drawing)
    refuse_other_formats(options.output, "heed show",
                         "text, or a drawing to a file whose name ends in .svg, .png or .pdf");
  if (options.tape && !drawing)
    throw Error(Exit::usage, "--tape: give --output a name that ends in .svg, .png or .pdf");
  if (drawing && (options.json || fixed)) {
    throw Error(Exit::usage,
                "--output {}: only a model or, with --tape, a training step can "
                "be drawn; choose another name for text or JSON",
                options.output);
  }
  const std::string text = drawn_model(options);
  if (drawing) {
    write_view(options.output, text);
    return 0;
  }
  write_output(options.output, [&](const Sink& sink) { sink(text); });
  if (!is_standard_output(options.output))
    print_message("heed: output written to " + options.output);
  return 0;
}

}  // namespace

void add_show(CommandLine& line) {
  const auto [command, options] =
      add_command<ShowCommand>(line, "show", Needs::model,
                               "resolved config, layers, parameters, FLOPs, memory", show_command);
  CLI::Option* const config = add_argument(command, "CONFIG|RUN", options->config,
                                           "an experiment (a YAML file), or a run folder");
  add_overrides(command, options->overrides, "model.d_model=512");
  add_json(command, options->json, "the config and its summary");
  add_choice(command, results, "--output", options->output, "FILE",
             "output file: a drawing if its name ends in .svg, else text (default: -, standard "
             "output)");
  add_flag(command, results, "--tape", options->tape,
           "with --output NAME.svg: draw the tape of a training step instead of the model");
  add_flag(command, results, "--schema", options->schema,
           "print the JSON Schema of configs, for editors, instead of a config")
      ->excludes(config);
  command->parse_complete_callback([options = options] {
    if (options->config.empty() && !options->schema) throw CLI::RequiredError("CONFIG|RUN");
  });
  command->footer(
      "FLOPs are those of the matrix products of forward and backward, including attention\n"
      "scores that are masked. Memory is an estimate. If the data or a SentencePiece tokenizer is\n"
      "missing, the numbers that depend on it are estimates too and are marked as such.\n"
      "Examples:\n"
      "  heed show configs/multi30k-de-en.yaml model.d_model=512 model.heads=8\n"
      "  heed show configs/dates.yaml --output dates.svg\n"
      "  heed show configs/dates.yaml model.layers=1 --tape --output tape.svg\n"
      "  heed show reference      every key with its meaning, choices and default\n"
      "  heed show --schema > heed.schema.json");
}

}  // namespace heed
