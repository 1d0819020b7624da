#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/command_line.h"
#include "train/commands/derived_run.h"
#include "train/commands/trained_model.h"

namespace heed {

namespace {

/// By default, the new run is in RUN-int8.
struct QuantizeCommand : NewRunArguments {
  std::string run;
  std::string weights;
  bool json = false;
};

/// The size of these tensors, in bytes.
std::int64_t bytes_of(const std::vector<TensorView>& views) {
  std::int64_t bytes = 0;
  for (const TensorView& view : views) bytes += std::ssize(view.bytes);
  return bytes;
}

/// "runs/a/" → "runs/a-int8"
std::string usual_folder(const std::string& run) { return without_last_slash(run) + "-int8"; }

int quantize_command(const QuantizeCommand& options) {
  const DerivedRun run{options.run,
                       {options.to.empty() ? usual_folder(options.run) : options.to},
                       options.overwrite,
                       options.command};
  check_destination(run);
  const TrainedModel original = TrainedModel::open(options.run, {}, options.weights);
  Config config = original.config;
  if (original.quantised)
    throw Error(Exit::usage, "the weights of {} are already int8", options.run);
  if (info_of(config.task).searches) config.decode.precision = DecodePrecision::int8;
  const Parameters state = original.model->state();
  const QuantisedWeights weights(state);
  nlohmann::json record = record_of(run, original, "quantised");
  const std::int64_t before = bytes_of(tensor_views(state)), after = bytes_of(weights.views());
  record["bytes"] = after;
  record["float32_bytes"] = before;
  write_derived_run(run, DerivedFrom::run(options.run, original), config, record,
                    [&](FileWriter& file) {
                      write_safetensors(file, weights.views(), {{"format", "pt"}});
                    });
  report_derived_run(
      run, record,
      fmt::format("{} bytes of weights, {:.3f} times the {} bytes in float32\n", after,
                  static_cast<double>(after) / static_cast<double>(before), before),
      options.json);
  return 0;
}

}  // namespace

void add_quantize(CommandLine& line) {
  const auto [command, options] = add_command<QuantizeCommand>(
      line, "quantize", Needs::model, "quantise a model's weights to int8", quantize_command);
  options->command = line.typed;
  add_argument(command, "RUN", options->run, "run folder, such as runs/dates")->required();
  add_weights(command, options->weights);
  add_new_run(command, *options, "the new run folder (default: RUN-int8)");
  add_json(command, options->json, "a record of the quantisation");
  add_trust(command);
  command->footer(
      "Matrices become int8 with a float32 scale for each row; vectors remain float32. heed eval\n"
      "and heed generate read the new run like any other. If its task generates text by search or\n"
      "sampling, its config sets decode.precision to int8; this setting also works for runs that\n"
      "are not quantised. The new run cannot be resumed or pruned; model.init_from loads its\n"
      "values as float32.\n"
      "Examples:\n"
      "  heed quantize runs/multi30k-de-en\n"
      "  heed eval runs/multi30k-de-en-int8");
}

}  // namespace heed
