#include "train/commands/trained_model.h"

#include <fmt/format.h>

#include <cmath>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/run/run_record.h"
#include "train/tasks/model.h"
#include "train/tasks/precision.h"
#include "train/terminal/run_log.h"

HEED_BEGIN

namespace {

/// Throws Error(bad_input) if the checksum is wrong; the message lists the weights of the run.
Checkpoint check_weights(const RunFolder& run, const std::filesystem::path& weights) {
  try {
    return check_file(weights, "model.safetensors");
  } catch (const Error& e) {
    if (e.code != Exit::bad_input) throw;
    const std::string alternatives = available_weights(run);
    throw Error(e.code, alternatives.empty() ? e.what()
                                             : fmt::format("{}\n--weights chooses other weights{}",
                                                           e.what(), alternatives));
  }
}

}  // namespace

TrainedModel TrainedModel::open(const std::string& run, const std::vector<std::string>& overrides,
                                const std::string& name) {
  const RunFolder folder{run};
  TrainedModel trained;
  trained.config = read_run_config(folder, overrides);
  if (!overrides.empty())  // refuses the keys that `heed resume` refuses
    changes_on_resume(read_run_config(folder, {}, PluginUse::leave), trained.config);
  const bool bf16 = trained.config.decode.precision == DecodePrecision::bf16;
  if (const std::string note = bf16_note(bf16, "decode.precision"); !note.empty()) print_note(note);
  const std::filesystem::path weights = find_weights(folder, name);
  for (const std::string& note : check_files(folder)) print_note("note: " + note);
  for (const std::string& changed : changed_plugins(folder, trained.config))
    print_note("note: " + changed);
  // A folder outside the run may contain weights without a state.json.
  std::error_code ignored;
  const auto top = std::filesystem::weakly_canonical(folder.path, ignored);
  const auto inside = std::filesystem::weakly_canonical(weights, ignored).lexically_relative(top);
  const bool in_run = !inside.empty() && *inside.begin() != "..";
  const bool has_state =
      std::filesystem::exists(std::filesystem::symlink_status(weights / "state.json"));
  trained.weights = WeightsInfo(weights);
  if (in_run || has_state) {
    const Checkpoint checkpoint = check_weights(folder, weights);
    require_fit(folder, trained.config, checkpoint);
    trained.weights = {weights, checkpoint};
  }
  trained.tokenizers = load_tokenizers(folder.path, trained.config);
  trained.task = make_task(trained.config);
  trained.model = build_uninitialised(trained.config, sizes_of(trained.tokenizers));
  const std::filesystem::path file = weights / "model.safetensors";
  trained.quantised =
      load_weights(SafetensorsFile::read(file), trained.model->state(), file.string()).quantised;
  print_note("weights: " + trained.weights.text());
  return trained;
}

void TrainedModel::require_finite(std::span<const LineScore> scores) const {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isfinite(scores[i].log_prob)) continue;
    throw Error(Exit::non_finite,
                "line {}: the log-probability is not finite: the weights in {} are unusable", i + 1,
                weights.folder.string());
  }
}

HEED_END
