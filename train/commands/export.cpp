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

/// A file in the folder of an export that is not yet complete.
constexpr const char* unfinished_mark = ".heed-export";

struct ExportCommand {
  std::string run, weights, output, precision, runtime;
  std::vector<std::string> formats;
  bool check = false, overwrite = false;
};

bool has_precision(const ExportFormat& format, const std::string& precision) {
  return precision.empty() ||
         std::ranges::find(format.precisions, precision) != format.precisions.end();
}

/// The formats of --to. Throws Error(usage) if one of several needs a file or a folder of its own, or
/// if all of them lack the precision.
std::vector<ExportFormat> chosen_formats(const ExportCommand& options) {
  std::vector<ExportFormat> chosen;
  for (const std::string& name : options.formats) {
    const ExportFormat& format = *std::ranges::find(export_formats(), name, &ExportFormat::name);
    if (options.formats.size() == 1 && !has_precision(format, options.precision))
      throw Error(Exit::usage, "--to {} has no precision {}: choose {}", name, options.precision,
                  fmt::join(format.precisions, " or "));
    if (format.alone && options.formats.size() > 1)
      throw Error(Exit::usage, "--to {} cannot share a folder: export it separately", name);
    chosen.push_back(format);
  }
  const auto has = [&](const auto& each) { return has_precision(each, options.precision); };
  if (chosen[0].runtime != nullptr && options.runtime.empty())
    throw Error(
        Exit::usage,
        "--to {} contains programs from npm: install them (npm install --prefix FOLDER {}), "
        "then name the folder with --runtime FOLDER",
        chosen[0].name, chosen[0].runtime);
  if (chosen[0].runtime == nullptr && !options.runtime.empty())
    throw Error(Exit::usage, "--runtime is only for --to page, not for --to {}",
                fmt::join(options.formats, ","));
  if (std::ranges::none_of(chosen, has))
    throw Error(Exit::usage, "--to {}: none of them has precision {}",
                fmt::join(options.formats, ","), options.precision);
  return chosen;
}

/// The file or folder to write: without a slash at its end, so that its name can be changed.
fs::path output_path(const ExportCommand& options, const ExportFormat& format) {
  const std::string run = without_last_slash(options.run);
  if (!options.output.empty()) return fs::path(without_last_slash(options.output));
  if (fs::path(run).filename() == "." || fs::path(run).filename() == "..")
    throw Error(Exit::usage, "--output is missing: {} has no name of its own", run);
  return fs::path(format.extension.empty() ? fmt::format("{}-{}", run, format.name)
                                           : fmt::format("{}{}", run, format.extension));
}

/// Throws Error(usage) unless the target is new, empty, or an earlier export that may be replaced.
void require_replaceable(const fs::path& target, const std::vector<ExportFormat>& formats,
                         bool overwrite) {
  const bool folder = formats[0].extension.empty();
  refuse_inside_run(target, "--output");
  std::error_code ignored;
  if (!path_exists(target)) return;
  const fs::file_status status = fs::symlink_status(target, ignored);
  if (fs::is_symlink(status))
    throw Error(Exit::usage,
                "--output: {} is a link, which heed does not replace: name another path",
                target.string());
  if (folder ? !fs::is_directory(status) : !fs::is_regular_file(status))
    throw Error(Exit::usage, "--output: {} is not a {}", target.string(),
                folder ? "folder" : "file");
  if (fs::is_empty(target, ignored)) return;
  if (std::ranges::none_of(formats, [&](const auto& each) { return each.is_export(target); }))
    throw Error(Exit::usage,
                "{} exists and is not an export of heed: choose another name with --output",
                target.string());
  if (!overwrite)
    throw Error(Exit::usage, "{} already holds an export: replace it with --overwrite",
                target.string());
}

/// Throws Error(usage) if the folder contains an entry that the new one lacks, such as .git.
void refuse_other_entries(const fs::path& folder, const fs::path& unfinished) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (path_exists(unfinished / entry.path().filename())) continue;
    throw Error(Exit::usage,
                "{} is not a file of this export, and --overwrite would remove it: choose another "
                "folder with --output, or move it away",
                entry.path().string());
  }
}

/// Removes what a killed process has left of an export. Throws Error(usage) for anything else.
void remove_unfinished(const fs::path& unfinished, bool folder) {
  if (!path_exists(unfinished)) return;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(unfinished, ignored);
  const bool own =
      folder ? fs::is_directory(status) &&
                   (path_exists(unfinished / unfinished_mark) || fs::is_empty(unfinished, ignored))
             : fs::is_regular_file(status);
  if (!own)
    throw Error(Exit::usage,
                "{} exists, and heed would write the export under this name before it is complete: "
                "rename it, or choose another name with --output",
                unfinished.string());
  remove_tree(unfinished);
}

/// Creates the folder of an export that is not yet complete.
void create_unfinished(const fs::path& folder) {
  create_folders(folder);
  FileWriter(folder / unfinished_mark).finish();
}

/// Writes the export to `unfinished` and, if asked, compares it with the model.
void write_export(const ExportFormat& format, ExportedModel model, const std::string& precision,
                  const fs::path& unfinished, bool check) {
  const bool chosen = !precision.empty() && has_precision(format, precision);
  model.precision = chosen ? precision : format.precisions[0];
  format.write(model, unfinished);
  if (!check) return;
  const std::vector<std::string> wrong = format.check(model, unfinished);
  if (!wrong.empty())
    throw Error(Exit::failed, "{}: {} differs from the model", unfinished.string(), wrong.front());
  print_message("read back: every tensor equals the model's");
}

int export_command(const ExportCommand& options) {
  const std::vector<ExportFormat> formats = chosen_formats(options);
  const fs::path target = output_path(options, formats[0]);
  require_replaceable(target, formats, options.overwrite);
  const TrainedModel trained = TrainedModel::open(options.run, {}, options.weights);
  const std::vector<std::int64_t>& steps = trained.weights.steps;
  const ExportedModel model{
      {options.run},
      trained.config,
      trained.tokenizers,
      trained.model->state(),
      fmt::format("{} {}", steps.size() > 1 ? "the mean of steps" : "step", fmt::join(steps, ", ")),
      options.weights.empty(),
      {},
      options.runtime};
  const fs::path unfinished = temporary_name(target);
  const bool in_folder = formats[0].extension.empty();
  fs::path existing = fs::absolute(target).parent_path();
  while (!path_exists(existing)) existing = existing.parent_path();
  create_folders(fs::absolute(target).parent_path());
  remove_unfinished(unfinished, in_folder);
  if (in_folder) create_unfinished(unfinished);
  try {
    for (const ExportFormat& format : formats)
      write_export(format, model, options.precision, unfinished, options.check);
    if (in_folder) remove_tree(unfinished / unfinished_mark);
    refuse_other_entries(target, unfinished);
  } catch (...) {
    remove_tree(unfinished);
    std::error_code not_empty;  // removes the folders made above
    for (fs::path made = fs::absolute(target).parent_path();
         made != existing && fs::remove(made, not_empty);)
      made = made.parent_path();
    throw;
  }
  remove_tree(target);
  rename_durably(unfinished, target);
  print_message(fmt::format("the model is in {}", target.string()));
  for (const ExportFormat& format : formats) {
    if (options.check)
      print_message("to load it: " +
                    fmt::format(fmt::runtime(format.client), shell_word(target.string())));
  }
  return 0;
}

std::string format_help() {
  std::string text;
  for (const ExportFormat& format : export_formats())
    text += fmt::format(
        "  {:<12} {}\n               {}{}\n", format.name, format.help,
        fmt::join(format.precisions, ", "),
        format.extension.empty() ? "" : fmt::format("; one file, RUN{}", format.extension));
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
  add_choice(command, choices, "--to", options->formats, "FORMAT",
             "one of those below, or several of one folder, with commas")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names));
  CLI::Option* const precision =
      add_choice(command, choices, "--precision", options->precision, "P",
                 "the numbers of the weights: float32, float16 or int8, as the format permits");
  command
      ->add_flag_callback(
          "--int8", [options = options] { options->precision = "int8"; },
          "the same as --precision int8")
      ->group(choices)
      ->excludes(precision);
  add_weights(command, options->weights);
  add_trust(command);
  add_flag(command, choices, "--check", options->check,
           "read what was written, compare it with the model, and print a command for the client");
  add_choice(command, choices, "--runtime", options->runtime, "FOLDER",
             "for --to page: where npm has installed the programs that the page contains");
  add_choice(command, results, "--output", options->output, "PATH",
             "the new folder or file (default: RUN-FORMAT, or RUN and the extension)");
  add_flag(command, results, "--overwrite", options->overwrite, "replace an earlier export");
  command->footer(
      "Formats:\n" + format_help() +
      "A model that a format cannot express is refused, with the keys that it lacks, before\n"
      "anything is written. docs/EXPORT.md describes the formats.\n"
      "Example:\n"
      "  heed export runs/multi30k-de-en --to huggingface --check");
}

}  // namespace heed
