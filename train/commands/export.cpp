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

/// The folder without a slash at its end, so that its name can be changed.
fs::path output_folder(const ExportCommand& options) {
  const std::string run = without_last_slash(options.run);
  if (!options.output.empty()) return fs::path(without_last_slash(options.output));
  if (fs::path(run).filename() == "." || fs::path(run).filename() == "..")
    throw Error(Exit::usage, "--output is missing: {} has no name of its own", run);
  return fs::path(run + "-" + options.format);
}

/// Throws Error(usage) unless the folder is new, empty, or an earlier export that may be replaced.
void require_replaceable(const fs::path& folder, bool overwrite) {
  refuse_inside_run(folder);
  std::error_code ignored;
  if (!path_exists(folder)) return;
  if (!fs::is_directory(fs::symlink_status(folder, ignored)))
    throw Error(Exit::usage, "--output: {} is not a folder", folder.string());
  if (fs::is_empty(folder, ignored)) return;
  const fs::path card = folder / "README.md";
  if (!path_exists(card) || !is_model_card(read_bytes(card, 1 << 20)))
    throw Error(Exit::usage,
                "{} exists and is not an export of heed: choose another folder with --output",
                folder.string());
  if (!overwrite)
    throw Error(Exit::usage, "{} already holds an export: replace it with --overwrite",
                folder.string());
}

/// Throws Error(usage) if the folder contains an entry that the new one lacks, such as .git.
void refuse_other_entries(const fs::path& folder, const fs::path& unfinished) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (path_exists(unfinished / entry.path().filename())) continue;
    throw Error(Exit::usage,
                "{} is no file of this export, and --overwrite would remove it: choose another "
                "folder with --output, or move it away",
                entry.path().string());
  }
}

/// Writes the export into `unfinished` and, if asked, compares it with the model.
void write_export(const ExportFormat& format, const ExportedModel& model, const fs::path& folder,
                  const fs::path& unfinished, bool check) {
  format.write(model, unfinished);
  refuse_other_entries(folder, unfinished);
  if (!check) return;
  const std::vector<std::string> wrong = format.check(model, unfinished);
  if (!wrong.empty())
    throw Error(Exit::failed, "{}: {} differs from the model", unfinished.string(), wrong.front());
  print_message("read back: every tensor equals the model's");
  print_message("to load it in the client: " +
                fmt::format(fmt::runtime(format.client), folder.string()));
}

int export_command(const ExportCommand& options) {
  const fs::path folder = output_folder(options);
  const ExportFormat& format =
      *std::ranges::find(export_formats(), options.format, &ExportFormat::name);
  require_replaceable(folder, options.overwrite);
  const TrainedModel trained = TrainedModel::open(options.run, {}, options.weights);
  const std::vector<std::int64_t>& steps = trained.weights.steps;
  const ExportedModel model{
      {options.run},
      trained.config,
      trained.tokenizers,
      trained.model->state(),
      fmt::format("{} {}", steps.size() > 1 ? "the mean of steps" : "step", fmt::join(steps, ", ")),
      options.weights.empty()};
  const fs::path unfinished = temporary_name(folder);
  remove_tree(unfinished);
  create_folders(unfinished);
  try {
    write_export(format, model, folder, unfinished, options.check);
  } catch (...) {
    remove_tree(unfinished);
    throw;
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
  add_trust(command);
  add_flag(command, choices, "--check", options->check,
           "read what was written, compare it with the model, and print a command for the client");
  add_choice(command, results, "--output", options->output, "FOLDER",
             "the new folder (default: RUN-FORMAT)");
  add_flag(command, results, "--overwrite", options->overwrite, "replace an earlier export");
  command->footer(
      "Formats:\n" + format_help() +
      "A model that a format cannot express is refused, with the keys that it lacks, before\n"
      "anything is written. docs/EXPORT.md describes the formats.\n"
      "Example:\n"
      "  heed export runs/multi30k-de-en --to huggingface --check");
}

}  // namespace heed
