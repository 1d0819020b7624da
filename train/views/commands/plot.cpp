#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/terminal/run_log.h"
#include "train/views/report/plots.h"

namespace heed {

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
  refuse_other_formats(output, "heed plot", "SVG files");
  if (!no_config) refuse_output_over_input(output, {options.config});
  write_output(output, [&](const Sink& sink) { sink(svg_file(arranged(drawings, 2))); });
  if (!is_standard_output(output)) print_message("heed: output written to " + output);
  return 0;
}

}  // namespace heed
