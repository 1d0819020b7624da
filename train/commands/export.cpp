#include "train/exchange/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/trained_model.h"
#include "train/exchange/model_card.h"
#include "train/run/run_folder.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  std::string run, weights, format, output;
  bool check = false, overwrite = false;
};

/// Throws Error(usage) unless the folder is new, empty, or an earlier export that may be replaced.
void require_replaceable(const fs::path& folder, bool overwrite) {
  std::error_code ignored;
  if (!path_exists(folder) || fs::is_empty(folder, ignored)) return;
  const fs::path card = folder / "README.md";
  const bool ours = path_exists(card) && is_model_card(read_bytes(card, 1 << 20));
  if (!ours)
    throw Error(Exit::usage,
                "{} exists and is not an export of heed: choose another folder with --output",
                folder.string());
  if (!overwrite)
    throw Error(Exit::usage, "{} already holds an export: replace it with --overwrite",
                folder.string());
}

int export_command(const ExportCommand& options) {
  const std::string name = options.run.substr(0, options.run.find_last_not_of('/') + 1);
  const fs::path folder = options.output.empty() ? name + "-" + options.format : options.output;
  const ExportFormat& format =
      *std::ranges::find(export_formats(), options.format, &ExportFormat::name);
  require_replaceable(folder, options.overwrite);
  const TrainedModel trained = TrainedModel::open(options.run, {}, options.weights);
  const ExportedModel model{{options.run},
                            trained.config,
                            trained.tokenizers,
                            trained.model->state(),
                            trained.weights.text()};
  const fs::path unfinished = temporary_name(folder);
  remove_tree(unfinished);
  create_folders(unfinished);
  try {
    format.write(model, unfinished);
  } catch (...) {
    remove_tree(unfinished);
    throw;
  }
  if (options.check) {
    const std::vector<std::string> wrong = format.check(model, unfinished);
    if (!wrong.empty())
      throw Error(Exit::failed, "{}: {} differs from the model", unfinished.string(),
                  wrong.front());
    print_message("read back: every tensor equals the model's");
    print_message("to compare in the client: " +
                  fmt::format(fmt::runtime(format.client), folder.string()));
  }
  remove_tree(folder);
  rename_durably(unfinished, folder);
  print_message(fmt::format("the model is in {}", folder.string()));
  return 0;
}

std::string format_help() {
  std::string text;
  for (const ExportFormat& format : export_formats())
    text += fmt::format("  {:<12} {}\n", format.name, format.help);
  return text;
}

}  // namespace

void add_export(CommandLine& line) {
  const auto [command, options] =
      add_command<ExportCommand>(line, "export", Needs::model,
                                 "write a model in the format of another program", export_command);
  add_argument(command, "RUN", options->run, "run folder, such as runs/dates")->required();
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) names.emplace_back(format.name);
  add_choice(command, choices, "--to", options->format, "FORMAT", "the format, one of those below")
      ->required()
      ->check(CLI::IsMember(names));
  add_weights(command, options->weights);
  add_flag(command, choices, "--check", options->check,
           "read what was written, compare it with the model, and print a command for the client");
  add_choice(command, results, "--output", options->output, "FOLDER",
             "the new folder (default: RUN-FORMAT)");
  add_flag(command, results, "--overwrite", options->overwrite, "replace an earlier export");
  command->footer(
      "Formats:\n" + format_help() +
      "A model that a format cannot express is refused, with the keys that stand in the way, before\n"
      "anything is written. docs/EXPORT.md describes the formats.\n"
      "Example:\n"
      "  heed export runs/multi30k-de-en --to huggingface --check");
}

}  // namespace heed
