#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/commands.h"
#include "train/commands/trained_model.h"
#include "train/loop/pruning.h"
#include "train/run/jsonl.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"
#include "train/terminal/talk.h"

namespace heed {

namespace {

constexpr std::int64_t most_sequences = 1000;

nlohmann::json json_of(const HeadImportance& head) {
  return {{"attention", head.attention}, {"head", head.head}, {"importance", head.importance}};
}

/// The heads that are still there, the least important first; equal ones in the order of the model.
std::vector<HeadImportance> by_importance(std::vector<HeadImportance> heads) {
  std::erase_if(heads, [](const HeadImportance& head) { return head.removed; });
  std::ranges::stable_sort(heads, {}, &HeadImportance::importance);
  return heads;
}

/// Removes heads from the model; returns a table to print, and fills `record`.
std::string prune_heads(const TrainedModel& trained, const ExperimentData& data, std::int64_t count,
                        nlohmann::json& record) {
  Team team(trained.config.threads);
  const bool valid = !data.valid.empty();
  if (!valid) tell("heed: without validation data, importance is measured on the training data");
  const std::vector<HeadImportance> heads = by_importance(importance_of_heads(
      *trained.model, trained.config, valid ? data.valid : data.train, most_sequences, team));
  if (heads.empty())
    throw Error(Exit::usage, "--heads: the model has no attention heads; use --share");
  if (count > std::ssize(heads))
    throw Error(Exit::usage,
                fmt::format("--heads {}: the model has {} heads", count, heads.size()));
  std::string text = fmt::format("{:<40}  head  importance\n", "attention");
  record["heads"] = nlohmann::json::array();
  for (std::int64_t i = 0; i < std::ssize(heads); ++i) {
    const HeadImportance& head = heads[i];
    text += fmt::format("{:<40}  {:>4}  {:>10.4f}{}\n", head.attention, head.head, head.importance,
                        i < count ? "  removed" : "");
    record["heads"].push_back(json_of(head));
    if (i < count) remove_head(*trained.model, trained.config, head);
  }
  record["removed_heads"] = count;
  return text;
}

/// The new run: the config and the tokenizers of the old one, and one checkpoint without optimizer
/// state.
void write_run(const RunFolder& to, const TrainedModel& trained, const Config& config,
               const SplitSums& sums, const PruneCommand& options, const nlohmann::json& record) {
  const RunLock lock = lock_new_run(to, options.overwrite);
  const std::vector<CheckpointFile> files{
      {"model.safetensors", [&](FileWriter& file) {
         write_safetensors(file, tensor_views(trained.model->state()), {{"format", "pt"}});
       }}};
  const std::vector<std::int64_t>& steps = trained.weights.steps;
  const std::int64_t step = steps.empty() ? 0 : *std::ranges::max_element(steps);
  CheckpointFolder(to.path).save(step, files, record, true);
  JsonlWriter metrics(to.metrics());
  metrics.append(record);
  metrics.sync();
  begin_run(to, config, trained.tokenizers, sums, options.command);  // now it is a run
}

}  // namespace

int prune_command(const PruneCommand& options) {
  const RunFolder to{options.to};
  RunLock::refuse_if_held(to.path);
  options.overwrite ? refuse_foreign_folder(to) : refuse_existing_run(to);
  std::error_code ignored;
  if (std::filesystem::equivalent(options.run, options.to, ignored))
    throw Error(Exit::usage, "--run must differ from the original run");
  if (!(options.share >= 0 && options.share <= 1))
    throw Error(Exit::usage,
                fmt::format("--share {}: expected a number from 0 to 1", options.share));
  const Config config = read_run_config(RunFolder{options.run}, {}, PluginUse::leave);
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  changes_on_resume(config, trained.config);  // refuses keys that determine the model
  nlohmann::json record{{"kind", "pruned"}, {"from", options.run}};
  record.update(trained.weights.json());
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
    text += fmt::format("{} weights are zero now\n", zeros);
  }
  write_run(to, trained, config, sums, options, record);
  if (options.json) {
    record["run"] = to.path.string();
    fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", text);
  }
  tell(fmt::format("the pruned run is in {}", to.path.string()));
  return 0;
}

}  // namespace heed
