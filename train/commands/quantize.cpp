#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/commands.h"
#include "train/commands/derived_run.h"
#include "train/commands/trained_model.h"

namespace heed {

namespace {

/// The size of these tensors, in bytes.
std::int64_t bytes_of(const std::vector<TensorView>& views) {
  std::int64_t bytes = 0;
  for (const TensorView& view : views) bytes += std::ssize(view.bytes);
  return bytes;
}

/// "runs/a/" → "runs/a-int8"
std::string usual_folder(const std::string& run) {
  return run.substr(0, run.find_last_not_of('/') + 1) + "-int8";
}

}  // namespace

int quantize_command(const QuantizeCommand& options) {
  const DerivedRun run{options.run,
                       {options.to.empty() ? usual_folder(options.run) : options.to},
                       options.overwrite,
                       options.command};
  check_destination(run);
  Config config = read_run_config(RunFolder{options.run}, {}, PluginUse::leave);
  const TrainedModel original = TrainedModel::open(options.run, {}, options.weights);
  if (original.quantised)
    throw Error(Exit::usage, "the weights of {} are already int8", options.run);
  if (info_of(config.task).searches) config.decode.precision = DecodePrecision::int8;
  const Parameters state = original.model->state();
  const QuantisedWeights weights(state);
  nlohmann::json record = record_of(run, original, "quantised");
  const std::int64_t before = bytes_of(tensor_views(state)), after = bytes_of(weights.views());
  record["bytes"] = after;
  record["float32_bytes"] = before;
  write_derived_run(run, original, config, {}, record, [&](FileWriter& file) {
    write_safetensors(file, weights.views(), {{"format", "pt"}});
  });
  report_derived_run(
      run, record,
      fmt::format("{} bytes of weights, {:.3f} times the {} bytes in float32\n", after,
                  static_cast<double>(after) / static_cast<double>(before), before),
      options.json);
  return 0;
}

}  // namespace heed
