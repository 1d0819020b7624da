#include "train/tasks/evaluate.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "autograd/finite_check.h"
#include "data/batches/batcher.h"
#include "train/decode/search.h"
#include "train/loop/step.h"
#include "train/metrics/bleu.h"
#include "train/metrics/chrf.h"

HEED_BEGIN

std::string metric_name(Metric metric) {
  constexpr const char* names[] = {"loss",        "perplexity", "token_accuracy",
                                   "exact_match", "bleu",       "chrf"};
  return names[static_cast<std::size_t>(metric)];
}

bool needs_outputs(Metric metric) {
  return metric == Metric::exact_match || metric == Metric::bleu || metric == Metric::chrf;
}
bool higher_is_better(Metric metric) {
  return metric != Metric::loss && metric != Metric::perplexity;
}
bool is_better(Metric metric, double value, std::optional<double> best) {
  if (!std::isfinite(value) || !best) return std::isfinite(value);
  return higher_is_better(metric) ? value > *best : value < *best;
}

double Evaluation::value(Metric metric) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  switch (metric) {
    case Metric::loss:
      return loss;
    case Metric::perplexity:
      return perplexity;
    case Metric::token_accuracy:
      return token_accuracy;
    case Metric::exact_match:
      return exact_match.value_or(none);
    case Metric::bleu:
      return bleu.value_or(none);
    case Metric::chrf:
      return chrf.value_or(none);
  }
  return none;
}

nlohmann::json Evaluation::json() const {
  nlohmann::json j{{"sentences", sentences},
                   {"tokens", tokens},
                   {"loss", loss},
                   {"perplexity", perplexity},
                   {"token_accuracy", token_accuracy}};
  if (bits_per_byte) j["bits_per_byte"] = *bits_per_byte;
  if (exact_match) j["exact_match"] = *exact_match;
  if (bleu) {
    j["bleu"] = *bleu;
    j["bleu_signature"] = bleu_signature;
  }
  if (chrf) {
    j["chrf"] = *chrf;
    j["chrf_signature"] = chrf_signature;
  }
  if (!outputs.empty()) j["decode_seconds"] = seconds;
  return j;
}

std::string Evaluation::text() const {
  std::string t = fmt::format("loss {:.4f}  perplexity {:.3f}  token accuracy {:.2f} %",
                              unsigned_nan(loss), unsigned_nan(perplexity), 100 * token_accuracy);
  if (bits_per_byte) t += fmt::format("  bits/byte {:.3f}", *bits_per_byte);
  if (exact_match) t += fmt::format("  exact match {:.2f} %", 100 * *exact_match);
  if (bleu) t += fmt::format("  BLEU {:.2f}", *bleu);
  if (chrf) t += fmt::format("  chrF2 {:.2f}", *chrf);
  return t;
}

Evaluation evaluate_loss(const Model& model, const Dataset& data, std::int64_t batch_tokens,
                         std::int64_t context, Team& team) {
  BatchOptions options;
  options.batch_tokens = std::min<std::int64_t>(batch_tokens, 4096);
  options.context = context;
  const std::vector<Batch> batches = evaluation_batches(data, options);
  std::vector<LossCounts> counts(batches.size());
  team.run(static_cast<std::int64_t>(batches.size()), [&](std::int64_t i) {
    const NoGrad no_grad;
    Pass pass;
    const Batch& batch = batches[static_cast<std::size_t>(i)];
    if (!batch.target_out.empty())
      model.loss(rows_of(batch), batch.target_out, 0, 1, pass,
                 &counts[static_cast<std::size_t>(i)]);
  });
  LossCounts total;
  Evaluation e;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    add_counts(total, counts[i]);
    e.sentences += batches[i].sequences();
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(total.tokens, 1));
  e.tokens = total.tokens;
  e.loss = total.nll / n;
  e.perplexity = std::exp(e.loss);
  e.token_accuracy = static_cast<double>(total.correct) / n;
  if (data.language_model() && data.text_bytes > 0) {
    e.bits_per_byte = total.nll / std::log(2.0) / static_cast<double>(data.text_bytes);
  }
  return e;
}

std::vector<std::string> translate_lines(const Model& model, const Sequences& source,
                                         const Tokenizer& target, const DecodeOptions& options,
                                         std::uint64_t seed, Team& team) {
  std::vector<std::string> lines;
  for (const Hypothesis& h : translate(FrozenModel(model), source, options, seed, team))
    lines.push_back(target.decode(h.tokens));
  return lines;
}

void evaluate_outputs(Evaluation& e, const Model& model, const Dataset& data,
                      const Tokenizers& tokenizers, const DecodeOptions& options, bool pretokenised,
                      std::uint64_t seed, Team& team) {
  const auto begin = std::chrono::steady_clock::now();
  e.outputs = translate_lines(model, data.source, *tokenizers.target, options, seed, team);
  e.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::int64_t exact = 0;
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    exact += e.outputs[i] == data.target_lines[i] ? 1 : 0;
  e.exact_match =
      static_cast<double>(exact) / static_cast<double>(std::max<std::size_t>(e.outputs.size(), 1));
  BleuOptions bleu_options;
  if (pretokenised) bleu_options.tokenizer = BleuTokenizer::none;
  const BleuScore score = corpus_bleu(e.outputs, data.target_lines, bleu_options);
  e.bleu = score.score;
  e.bleu_signature = score.signature;
  e.bleu_text = score.text();
  const ChrfScore chrf_score = corpus_chrf(e.outputs, data.target_lines);
  e.chrf = chrf_score.score;
  e.chrf_signature = chrf_score.signature;
}

HEED_END
