#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/commands.h"
#include "train/commands/derived_run.h"
#include "train/commands/trained_model.h"
#include "train/loop/pruning.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

constexpr std::int64_t max_sequences = 1000;

/// Removes the `count` least important heads; heads of equal importance are in the order of the
/// model. Returns a table of the importance of these and the
/// remaining heads, and adds it to `record`.
std::string prune_heads(const TrainedModel& trained, const ExperimentData& data, std::int64_t count,
                        nlohmann::json& record) {
  Team team(trained.config.threads);
  const bool valid = !data.valid.empty();
  if (!valid)
    print_message("heed: without validation data, importance is measured on the training data");
  std::vector<HeadImportance> heads = importance_of_heads(
      *trained.model, trained.config, valid ? data.valid : data.train, max_sequences, team);
  std::erase_if(heads, [](const HeadImportance& head) { return head.removed; });
  std::ranges::stable_sort(heads, {}, &HeadImportance::importance);
  if (heads.empty())
    throw Error(Exit::usage, "--heads: the model has no attention head to remove; use --share");
  if (count > std::ssize(heads))
    throw Error(Exit::usage, "--heads {}: expected at most {}, the number of remaining heads",
                count, heads.size());
  std::string text = fmt::format("{:<40}  head  importance\n", "attention");
  record["heads"] = nlohmann::json::array();
  for (std::int64_t i = 0; i < std::ssize(heads); ++i) {
    const HeadImportance& head = heads[i];
    text += fmt::format("{:<40}  {:>4}  {:>10.4f}{}\n", head.attention, head.head, head.importance,
                        i < count ? "  removed" : "");
    record["heads"].push_back(
        {{"attention", head.attention}, {"head", head.head}, {"importance", head.importance}});
    if (i < count) remove_head(*trained.model, trained.config, head);
  }
  record["removed_heads"] = count;
  return text;
}

}  // namespace

int prune_command(const PruneCommand& options) {
  const DerivedRun run{options.run, {options.to}, options.overwrite, options.command};
  check_destination(run);
  if (!(options.share >= 0 && options.share <= 1))
    throw Error(Exit::usage, "--share {}: expected a number from 0 to 1", options.share);
  const Config config = read_run_config(RunFolder{options.run}, {}, PluginUse::leave);
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  changes_on_resume(config, trained.config);  // refuses the overrides that `heed resume` refuses
  if (trained.quantised)
    throw Error(Exit::usage, "{} has int8 weights: prune a run before you quantise it",
                options.run);
  nlohmann::json record = record_of(run, trained, "pruned");
  std::string text;
  SplitSums sums;
  if (options.heads > 0) {
    const ExperimentData data = trained.task->load(&trained.tokenizers);
    sums = data.sums;
    text += prune_heads(trained, data, options.heads, record);
  }
  if (options.share > 0) {
    const std::int64_t zeros = remove_weights(*trained.model, options.share);
    record["zero_weights"] = zeros;
    text += fmt::format("zero weights: {}\n", zeros);
  }
  write_derived_run(run, trained, config, sums, record, [&](FileWriter& file) {
    write_safetensors(file, tensor_views(trained.model->state()), {{"format", "pt"}});
  });
  report_derived_run(run, record, text, options.json);
  return 0;
}

}  // namespace heed
