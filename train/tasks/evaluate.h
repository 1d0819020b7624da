#pragma once
/// What a model is worth on a split.
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/base/team.h"
#include "data/batches/dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/models/model.h"
#include "train/config/options.h"

HEED_BEGIN

struct Evaluation {
  std::int64_t sentences = 0;           ///< windows, for a language model
  std::int64_t tokens = 0;              ///< target tokens, </s> counted
  double loss = 0;                      ///< −log p a token, natural, without label smoothing
  double perplexity = 0;                ///< exp(loss)
  double token_accuracy = 0;            ///< share of tokens that were likeliest, given those before
  std::optional<double> bits_per_byte;  ///< language models
  // Where the split was translated too; per cent but for exact_match, a share:
  std::optional<double> exact_match, bleu, chrf;
  std::string bleu_signature, bleu_text, chrf_signature;
  std::vector<std::string> outputs;  ///< one for each source line
  double seconds = 0;                ///< of search

  nlohmann::json json() const;
  /// "loss 1.234  perplexity 3.43  …", for people.
  std::string text() const;
  double value(Metric metric) const;  ///< NaN where it was not computed
};

/// Teacher-forced loss and accuracy of a split.
Evaluation evaluate_loss(const Model& model, const Dataset& data, std::int64_t batch_tokens,
                         std::int64_t context, Team& team);
/// Translates the split and adds exact match, BLEU and chrF2 (pretokenised: BLEU at spaces, not
/// 13a).
void evaluate_outputs(Evaluation& evaluation, const Model& model, const Dataset& data,
                      const Tokenizers& tokenizers, const DecodeOptions& options, bool pretokenised,
                      std::uint64_t seed, Team& team);
/// The lines that a model makes of a split's source.
std::vector<std::string> translate_lines(const Model& model, const Sequences& source,
                                         const Tokenizer& target, const DecodeOptions& options,
                                         std::uint64_t seed, Team& team);

std::string metric_name(Metric metric);  ///< as in a config
/// True for the metrics that need a search.
bool needs_outputs(Metric metric);
bool higher_is_better(Metric metric);
/// A value that is no number is never better; any number is better than none.
bool is_better(Metric metric, double value, std::optional<double> best);

HEED_END
