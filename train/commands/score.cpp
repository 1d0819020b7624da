#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/base/lines.h"
#include "autograd/finite_check.h"
#include "data/batches/batcher.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/decode/search.h"
#include "train/tasks/session.h"

namespace heed {

namespace {

struct Score {
  double log_prob = 0;
  std::int64_t tokens = 0;
};

std::vector<Score> score_pairs(const TrainedModel& trained, const ScoreCommand& options,
                               Team& team) {
  const Config& config = trained.config;
  const Split split =
      read_split({{options.source}, {options.target}, {}}, false, config.data.lowercase, "score");
  const Dataset data = tokenize(split, *trained.tokenizers.source, *trained.tokenizers.target, {},
                                static_cast<int>(config.threads));
  check_evaluable(split, data, evaluation_limits(config), "score");
  BatchOptions batching;
  batching.batch_tokens = std::min<std::int64_t>(config.train.batch_tokens, 4096);
  const std::vector<double> log_probs = score_targets(
      FrozenModel(*trained.model), evaluation_batches(data, batching), data.size(), team);
  std::vector<Score> scores;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    scores.push_back(
        {log_probs[static_cast<std::size_t>(i)], data.target.length(i) + 1});  // with </s>
  }
  return scores;
}

/// Windows of all lines, packed into batches; window w belongs to line lines[w].
struct Windows {
  std::vector<Batch> batches;
  std::vector<std::size_t> lines;

  /// What `read` predicts is `next`: y2 … yn behind y1 … yn−1.
  void add(std::size_t line, std::span<const std::int32_t> read, std::span<const std::int32_t> next,
           std::int64_t most) {
    if (batches.empty() ||
        static_cast<std::int64_t>(batches.back().target_in.size() + read.size()) > most) {
      batches.emplace_back().target_offsets.push_back(0);
    }
    Batch& batch = batches.back();
    batch.target_in.insert(batch.target_in.end(), read.begin(), read.end());
    batch.target_out.insert(batch.target_out.end(), next.begin(), next.end());
    batch.target_offsets.push_back(static_cast<std::int32_t>(batch.target_in.size()));
    batch.samples.push_back(static_cast<std::int64_t>(lines.size()));
    lines.push_back(line);
  }
};

/// A line of a text stands behind a newline, so that its first token is scored as well. Longer ones
/// go on in further windows, as in evaluation.
std::vector<Score> score_text(const TrainedModel& trained, const ScoreCommand& options,
                              Team& team) {
  const std::vector<std::string> lines = read_lines(options.target);
  const auto context = static_cast<std::size_t>(trained.config.model.context);
  std::vector<Score> scores(lines.size());
  Windows windows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::int32_t> ids = trained.tokenizers.target->encode("\n");
    const std::size_t before = ids.size();
    const std::vector<std::int32_t> own =
        trained.tokenizers.target->encode(trained.prepared(lines[i]));
    ids.insert(ids.end(), own.begin(), own.end());
    scores[i].tokens = static_cast<std::int64_t>(own.size());
    if (before == 0 && !ids.empty())
      ids.insert(ids.begin(), Tokenizer::eos);  // a tokenizer without newlines
    for (std::size_t at = std::max<std::size_t>(before, 1) - 1; at + 1 < ids.size();
         at += context) {
      const std::size_t n = std::min(context, ids.size() - 1 - at);
      windows.add(i, std::span(ids).subspan(at, n), std::span(ids).subspan(at + 1, n), 4096);
    }
  }
  const std::vector<double> log_probs =
      score_targets(FrozenModel(*trained.model), windows.batches,
                    static_cast<std::int64_t>(windows.lines.size()), team);
  for (std::size_t w = 0; w < log_probs.size(); ++w)
    scores[windows.lines[w]].log_prob += log_probs[w];
  return scores;
}

/// A line for each score, or all of them as one JSON object with the weights they are of.
std::string listed(const std::vector<Score>& scores, const WeightsInfo& weights, bool json) {
  std::string text;
  nlohmann::json log_probs = nlohmann::json::array(), tokens = nlohmann::json::array();
  for (const Score& s : scores) {
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
  const bool lm = trained.config.task == Task::lm;
  if (!lm && options.source.empty())
    throw Error(Exit::usage, "--source is missing: this model scores targets given their source");
  if (lm && !options.source.empty())
    throw Error(Exit::usage,
                "--source is for task seq2seq; a language model scores --target alone");
  if (options.source == "-" && options.target == "-")
    throw Error(Exit::usage, "--source and --target cannot both be standard input");
  refuse_output_over_input(options.output, {options.source, options.target});
  Team team(trained.config.threads);
  std::vector<Score> scores;
  write_output(options.output, [&](const Sink& sink) {  // which cannot be written fails at once
    scores = lm ? score_text(trained, options, team) : score_pairs(trained, options, team);
    sink(listed(scores, trained.weights, options.json));
  });
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isfinite(scores[i].log_prob)) continue;
    throw Error(Exit::non_finite,
                fmt::format("line {}: its log-probability is not finite: the weights in {} are "
                            "unusable",
                            i + 1, trained.weights.folder.string()));
  }
  return 0;
}

}  // namespace heed
