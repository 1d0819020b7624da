#pragma once
/// From a trained model to tokens: greedy search, beam search, sampling.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "autograd/base/team.h"
#include "autograd/kernels/gemm/packed.h"
#include "data/batches/batch.h"
#include "data/batches/dataset.h"
#include "nn/models/model.h"
#include "train/config/options.h"
#include "train/distributed/workers.h"

HEED_BEGIN

struct Hypothesis {
  std::vector<std::int32_t> tokens;  ///< without specials
  double log_prob = 0;               ///< Σ log p, including </s> if the search reached it
  double score = 0;  ///< log_prob / ((5 + n) / 6)^α, n tokens, including </s> if reached (Wu et al.
                     ///< 2016, section 7)

  static auto members(auto& self) { return std::tie(self.tokens, self.log_prob, self.score); }
};

/// Extends hypotheses token by token until each has ended. A finished hypothesis occupies a place
/// in its sentence's beam, so a search ends after `beam` of them; finished sentences leave the
/// batch. Ties: the earlier hypothesis, then the smaller token, wins. Probabilities are those that
/// the options leave: without </s> before min_length, and with the repetition penalty.
class Search {
 public:
  /// limit: the maximum tokens of a hypothesis; numbers: of the sentences, for the random keys of
  /// sampling.
  Search(const DecodeOptions& options, std::int64_t limit, std::uint64_t seed,
         std::vector<std::int64_t> numbers)
      : options_(options), limit_(limit), seed_(seed), numbers_(std::move(numbers)) {}

  /// Hypotheses of sentence i begin with prefixes[i], which counts in their log-probabilities.
  void begin_with(std::vector<std::vector<std::int32_t>> prefixes) {
    prefixes_ = std::move(prefixes);
  }
  /// `callback` receives each token as soon as it is final; requires one sentence and a beam of
  /// one.
  void on_token(std::function<void(std::int32_t)> callback) { on_token_ = std::move(callback); }

  /// `decoding` has one hypothesis per sentence; `tokens` are the last tokens of their
  /// prompts, not yet fed. Returns the hypotheses of each sentence, the best first: at least one,
  /// at most as many as the beam.
  std::vector<std::vector<Hypothesis>> run(Decoding& decoding, std::vector<std::int32_t> tokens);

 private:
  struct Live {
    std::int32_t sentence;
    Hypothesis hypothesis;
  };
  struct Candidate {
    double log_prob;
    std::int32_t parent, token;  // parent: index among the live
  };
  void best_tokens(const Array& logits, std::int64_t row, std::int64_t count,
                   std::vector<Candidate>& into) const;
  void sampled_token(const Array& logits, std::int64_t row, std::vector<Candidate>& into) const;
  /// Applies min_length and repetition_penalty to the logits of a hypothesis's next token.
  void restrict(real* logits, const Hypothesis& so_far) const;
  void finish(Live done, bool ended);
  /// The next token of the sentence's prefix; none after its end.
  std::optional<std::int32_t> forced_token(const Live& live) const;

  DecodeOptions options_;
  std::int64_t limit_;
  std::uint64_t seed_;
  std::vector<std::int64_t> numbers_;
  std::vector<Live> live_;
  std::vector<std::vector<Hypothesis>> finished_;  // of each sentence
  std::vector<std::vector<std::int32_t>> prefixes_;
  std::function<void(std::int32_t)> on_token_;
};

/// A model whose weights do not change during this object's lifetime, so that decoding can pack
/// them once for all steps, using as much memory again (int8: a quarter of it). The model must
/// outlive it.
struct FrozenModel {
  /// A Generative one; else throws std::bad_cast. int8: products take these weights as int8.
  explicit FrozenModel(const Model& of, DecodePrecision precision = DecodePrecision::float32);
  const Generative& model;
  mutable kernels::PackedWeights weights;
};

/// The default number of batches of translate(). Not the number of threads: results that depend on
/// the batches must not depend on the machine.
inline constexpr std::int64_t usual_batches = 4;

/// The options of a translation that are not part of the config.
struct TranslateRequest {
  std::span<const std::int64_t> numbers = {};  ///< of the sentences; by default their indices
  std::span<const std::vector<std::int32_t>> prefixes = {};  ///< tokens that outputs begin with
  std::int64_t nbest = 1;  ///< hypotheses of each sentence: the best of the beam, or samples
  std::int64_t batches = usual_batches;
};

/// Translates every source of a dataset, text or not, in batches of similar lengths spread over the
/// workers: at least `batches`, but none smaller than 32 hypotheses.
/// Each sentence's result is a function of the sentence, the options, the seed and, when
/// sampling, the sentence's number: its index in the dataset, unless `numbers` is given. In bf16 it
/// also depends on the batches: small products stay in float32 (autograd/kernels/gemm/bf16.h).
std::vector<std::vector<Hypothesis>> translate(const FrozenModel& frozen, const Dataset& data,
                                               const DecodeOptions& options, std::uint64_t seed,
                                               const Workers& workers,
                                               const TranslateRequest& request);
/// The best hypothesis of each sentence.
std::vector<Hypothesis> translate(const FrozenModel& frozen, const Dataset& data,
                                  const DecodeOptions& options, std::uint64_t seed,
                                  const Workers& workers,
                                  std::span<const std::int64_t> numbers = {},
                                  std::int64_t batches = usual_batches);

/// Continues a prompt (ids; empty: begins with </s>) with a language model by up to
/// options.max_length tokens. If prompt and continuation outgrow the model's context, decoding
/// continues from the last half. The prompt is read in one pass. With a beam of one,
/// `on_token` receives each token as soon as it is final.
std::vector<std::int32_t> continue_text(const FrozenModel& frozen,
                                        std::span<const std::int32_t> prompt,
                                        const DecodeOptions& options, std::uint64_t seed,
                                        std::int64_t number,
                                        const std::function<void(std::int32_t)>& on_token = {});
/// The hypotheses of a continuation, the best first, as many as the beam. The first is what
/// continue_text returns. Throws Error(usage) if prompt and continuation can exceed the model's
/// context.
std::vector<Hypothesis> continuations(const FrozenModel& frozen,
                                      std::span<const std::int32_t> prompt,
                                      const DecodeOptions& options, std::uint64_t seed,
                                      std::int64_t number);

/// log p of each target sequence with its </s>, given its source. Unnormalised natural logarithms.
/// Like outputs, they do not depend on the other sequences of the batch.
std::vector<double> score_targets(const FrozenModel& frozen, std::span<const Batch> batches,
                                  std::int64_t count, Team& team);

HEED_END
