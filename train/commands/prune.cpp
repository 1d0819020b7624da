#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/commands/command_line.h"
#include "train/commands/derived_run.h"
#include "train/commands/trained_model.h"
#include "train/loop/pruning.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

struct PruneCommand : RunArguments, NewRunArguments {
  std::int64_t heads = 0;  ///< number of heads to remove, the least important first
  double share = 0;        ///< share of the weights to set to zero, the smallest magnitudes first
  bool json = false;
};

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

int prune_command(const PruneCommand& options) {
  const DerivedRun run{options.run, {options.to}, options.overwrite, options.command};
  check_destination(run);
  if (!(options.share >= 0 && options.share <= 1))
    throw Error(Exit::usage, "--share {}: expected a number from 0 to 1", options.share);
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  const Config config = read_run_config(RunFolder{options.run}, {}, PluginUse::leave);
  if (trained.quantised)
    throw Error(Exit::usage, "{} has int8 weights: prune a run before you quantise it",
                options.run);
  nlohmann::json record = record_of(run, trained, "pruned");
  std::string text;
  if (options.heads > 0) {
    const ExperimentData data = trained.task->load(&trained.tokenizers);
    text += prune_heads(trained, data, options.heads, record);
  }
  if (options.share > 0) {
    const std::int64_t zeros = remove_weights(*trained.model, options.share);
    record["zero_weights"] = zeros;
    text += fmt::format("zero weights: {}\n", zeros);
  }
  write_derived_run(
      run, DerivedFrom::run(options.run, trained), config, record, [&](FileWriter& file) {
        write_safetensors(file, tensor_views(trained.model->state()), {{"format", "pt"}});
      });
  report_derived_run(run, record, text, options.json);
  return 0;
}

}  // namespace

void add_prune(CommandLine& line) {
  const auto [command, options] = add_command<PruneCommand>(
      line, "prune", Needs::model, "prune attention heads or weights of a model", prune_command);
  options->command = line.typed;
  command->parse_complete_callback([options = options] {
    if (options->heads == 0 && options->share == 0) throw CLI::RequiredError("--heads or --share");
  });
  add_run(command, options->run, options->overrides, "data.valid.source=other.txt");
  add_choice(command, choices, "--heads", options->heads, "N",
             "number of attention heads to remove, the least important first")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  add_choice(command, choices, "--share", options->share, "S",
             "share of the weights (in matrices) to set to zero, the smallest magnitudes first")
      ->check(CLI::Range(0.0, 1.0));
  add_weights(command, options->weights);
  add_new_run(command, *options, "the new run folder")->required();
  add_json(command, options->json, "a record of the pruning");
  command->footer(
      "The importance of heads is measured on at most 1,000 sequences of the validation data or,\n"
      "if there are none, of the training data. heed eval and heed generate read the new run like\n"
      "any other. To train it further, start a run with model.init_from; zero weights may then\n"
      "change.\n"
      "Examples:\n"
      "  heed prune runs/multi30k-de-en --heads 12 --run runs/fewer-heads\n"
      "  heed prune runs/multi30k-de-en --share 0.5 --run runs/half-zero\n"
      "  heed eval runs/half-zero");
}

}  // namespace heed
