#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/config/fields.h"
#include "train/views/commands/view_file.h"
#include "train/views/report/plots.h"

namespace heed {

namespace {

struct PlotCommand {
  std::string what;    ///< one of plot_names()
  std::string config;  ///< config, or the first override; empty: the defaults
  std::vector<std::string> overrides;
  std::int64_t length = 64;  ///< number of positions
  std::string output;        ///< empty: <what>.svg
};

int plot_command(const PlotCommand& options) {
  // CONFIG is optional, so CLI11 may have parsed the first override as CONFIG.
  std::vector<std::string> overrides = options.overrides;
  const bool no_config = options.config.empty() || options.config.find('=') != std::string::npos;
  if (no_config && !options.config.empty()) overrides.insert(overrides.begin(), options.config);
  const Config config = no_config
                            ? parse_config("data: {synthetic: {name: copy}}", "plot", overrides)
                            : read_config(options.config, overrides);
  const std::vector<Drawing> drawings = plots_of(options.what, config, options.length);
  const std::string output = options.output.empty() ? options.what + ".svg" : options.output;
  if (!names_drawing(output))
    refuse_other_formats(output, "heed plot",
                         "drawings to files whose names end in .svg, .png or .pdf");
  if (!no_config) check_output(output, {options.config});
  check_output(output, named_files(config));
  write_view(output, svg_file(arranged(drawings, 2)));
  return 0;
}

}  // namespace

void add_plot(CommandLine& line) {
  const auto [command, options] = add_command<PlotCommand>(
      line, "plot", Needs::files,
      "drawings of positions, schedules, softmax, masks, activations, layers and examples of the "
      "course",
      plot_command);
  add_argument(
      command, "WHAT", options->what,
      "positions, schedule, softmax, masks, activations, layers, or examples of the course "
      "that read no config: gradcheck, scores, loss, tiles, beam, cache")
      ->required()
      ->check(CLI::IsMember(plot_names()));
  add_argument(command, "CONFIG", options->config, "a config (default: the defaults of all keys)");
  add_overrides(command, options->overrides, "model.heads=8");
  add_choice(command, choices, "--length", options->length, "N",
             "number of positions to draw (default: 64)")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{4096}));
  add_choice(command, results, "--output", options->output, "FILE",
             "the drawing, a file whose name ends in .svg, .png or .pdf (default: WHAT.svg)");
  command->footer(
      "Examples:\n"
      "  heed plot positions model.d_model=128 --length 100\n"
      "  heed plot schedule configs/multi30k-de-en.yaml\n"
      "  heed plot masks 'model.attention={pattern: window, window: 8}' --length 32 --output "
      "masks.svg");
}

}  // namespace heed
