#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/finite_check.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"

namespace heed {

namespace {

/// A line for each score, or all of them as one JSON object.
std::string listed(const std::vector<LineScore>& scores, bool json) {
  std::string text;
  nlohmann::json log_probs = nlohmann::json::array(), tokens = nlohmann::json::array();
  for (const LineScore& s : scores) {
    if (!json) text += fmt::format("{:.6f}\t{}\n", unsigned_nan(s.log_prob), s.tokens);
    log_probs.push_back(s.log_prob);
    tokens.push_back(s.tokens);
  }
  return json ? nlohmann::json{{"log_prob", log_probs}, {"tokens", tokens}}.dump() + "\n" : text;
}

}  // namespace

int score_command(const ScoreCommand& options) {
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  if (options.source == "-" && options.target == "-")
    throw Error(Exit::usage, "--source and --target cannot both be standard input");
  Team team(trained.config.threads);
  std::vector<LineScore> scores;
  write_output(options.output, [&](const Sink& sink) {  // which cannot be written fails at once
    scores = trained.task->score(trained.with(team), options.source, options.target);
    sink(listed(scores, options.json));
  });
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isfinite(scores[i].log_prob)) continue;
    throw Error(Exit::non_finite,
                fmt::format("line {}: its log-probability is not finite: the weights in {} are of "
                            "no use",
                            i + 1, trained.weights.string()));
  }
  return 0;
}

}  // namespace heed
