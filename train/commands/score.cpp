#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/tape/finite_check.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/run/run_folder.h"

namespace heed {

namespace {

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

}  // namespace

int score_command(const ScoreCommand& options) {
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  if (options.source == "-" && options.target == "-")
    throw Error(Exit::usage, "--source and --target cannot both be standard input");
  std::vector<std::string> read = files_of({options.run});
  read.insert(read.end(), {options.source, options.target});
  refuse_output_over_input(options.output, read);
  Team team(trained.config.threads);
  std::vector<LineScore> scores;
  write_output(options.output,
               [&](const Sink& sink) {  // opens the output first: it may be unwritable
                 scores = trained.task->score(trained.with(team), options.source, options.target);
                 sink(listed(scores, trained.weights, options.json));
               });
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isfinite(scores[i].log_prob)) continue;
    throw Error(Exit::non_finite,
                "line {}: the log-probability is not finite: the weights in {} are unusable", i + 1,
                trained.weights.folder.string());
  }
  return 0;
}

}  // namespace heed
