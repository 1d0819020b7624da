#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/tape/finite_check.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/config/fields.h"

namespace heed {

namespace {

struct ScoreCommand : RunArguments {
  std::string source, target;  ///< lm: target only
  std::string output = "-";
  bool json = false;
};

/// Formats one line per score or, with `json`, one object with all scores and the origin of the
/// weights.
std::string listed(const std::vector<LineScore>& scores, const WeightsInfo& weights, bool json) {
  std::string text;
  nlohmann::json log_probs = nlohmann::json::array(), tokens = nlohmann::json::array();
  for (const LineScore& s : scores) {
    if (!json) text += fmt::format("{:.6f}\t{}\n", unsigned_nan(s.log_prob), s.tokens);
    log_probs.push_back(s.log_prob);
    tokens.push_back(s.tokens);
  }
  if (!json) return text;
  nlohmann::json record{{"log_prob", log_probs}, {"tokens", tokens}};
  record.update(weights.json());
  return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int score_command(const ScoreCommand& options) {
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  if (options.source == "-" && options.target == "-")
    throw Error(Exit::usage, "--source and --target cannot both be standard input");
  check_output(options.output, {options.source, options.target});
  check_output(options.output, named_files(trained.config));
  Team team(trained.config.threads);
  std::vector<LineScore> scores;
  write_output(options.output,
               [&](const Sink& sink) {  // opens the output first: it may be unwritable
                 scores = trained.task->score(
                     trained.with(team), trained.task->read_scored(options.source, options.target));
                 sink(listed(scores, trained.weights, options.json));
               });
  trained.require_finite(scores);
  return 0;
}

}  // namespace

void add_score(CommandLine& line) {
  const auto [command, options] = add_command<ScoreCommand>(
      line, "score", Needs::model, "log-probability of given outputs, one per line", score_command);
  add_run(command, options->run, options->overrides, "decode.precision=bf16");
  add_choice(command, choices, "--source", options->source, "FILE",
             "source lines of the targets (not for language models)");
  add_choice(command, choices, "--target", options->target, "FILE",
             "lines to score, plain text or gzip")
      ->required();
  add_weights(command, options->weights);
  add_choice(command, results, "--output", options->output, "FILE",
             "output file (default: -, standard output)");
  add_json(command, options->json, "the lists log_prob and tokens");
  command->footer(
      "Prints, for each target line, the natural logarithm of its probability and, after a tab,\n"
      "its number of tokens. For seq2seq and text2text, both include the end token. For tag and\n"
      "classify, the tokens are the labels. For lm, each line is scored as if it followed a\n"
      "newline, and only the tokens of the line count. For mlm, each token is hidden in turn, and the\n"
      "score is the sum of the log-probabilities of the hidden tokens (pseudo-log-likelihood).\n"
      "Example:\n"
      "  heed score runs/multi30k-de-en --source test.de --target test.en");
}

}  // namespace heed
