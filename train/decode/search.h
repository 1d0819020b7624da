#pragma once
/// Decoding: greedy search, beam search and sampling with a trained model.
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
  std::vector<std::int32_t> tokens;  ///< ids, special tokens omitted
  double log_prob = 0;               ///< Σ log p, including </s> if the search reached it
  double score = 0;  ///< log_prob / ((5 + n) / 6)^α, n tokens, including </s> if reached (Wu et al.
                     ///< 2016, section 7)

  static auto members(auto& self) { return std::tie(self.tokens, self.log_prob, self.score); }
};

/// Extends hypotheses token by token until each has ended. A finished hypothesis occupies a place
/// in its sentence's beam, so a search ends after `beam` of them; finished sentences are removed
/// from the batch. Between equal probabilities, the earlier hypothesis precedes, then the smaller
/// token. Probabilities exclude </s> before min_length and include the repetition penalty.
class Search {
 public:
  /// limit: maximum number of tokens of a hypothesis; numbers: numbers of the sentences, which
  /// sampling uses in its random keys.
  Search(const DecodeOptions& options, std::int64_t limit, std::uint64_t seed,
         std::vector<std::int64_t> numbers)
      : options_(options), limit_(limit), seed_(seed), numbers_(std::move(numbers)) {}

  /// Makes the hypotheses of sentence i begin with prefixes[i], which counts in their
  /// log-probabilities.
  void begin_with(std::vector<std::vector<std::int32_t>> prefixes) {
    prefixes_ = std::move(prefixes);
  }
  /// Sets a callback, which receives each token as soon as it is final. Requires one sentence and a
  /// beam of one.
  void on_token(std::function<void(std::int32_t)> callback) { on_token_ = std::move(callback); }

  /// `decoding` has one hypothesis per sentence and has read all tokens of their prompts except the
  /// last ones, `tokens`. Returns the hypotheses of each sentence, the best first: minimum one,
  /// maximum `beam`.
  std::vector<std::vector<Hypothesis>> run(Decoding& decoding, std::vector<std::int32_t> tokens);

 private:
  struct Live {
    std::int32_t sentence;
    Hypothesis hypothesis;
  };
  struct Candidate {
    double log_prob;
    std::int32_t parent, token;  // parent: index in live_
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
  std::vector<std::vector<Hypothesis>> finished_;  // finished hypotheses of each sentence
  std::vector<std::vector<std::int32_t>> prefixes_;
  std::function<void(std::int32_t)> on_token_;
};

/// A model whose weights do not change during this object's lifetime, so decoding packs them once
/// for all steps. The packed weights need the memory of the weights again (int8: a quarter of it).
/// The model must outlive this object.
struct FrozenModel {
  /// Throws std::bad_cast if the model is not Generative. int8: the packed weights are int8.
  explicit FrozenModel(const Model& frozen, DecodePrecision precision = DecodePrecision::float32);
  const Generative& model;
  mutable kernels::PackedWeights weights;
};

/// The default number of batches of translate(). It is independent of the number of threads,
/// because results that depend on the batches must not depend on the machine.
inline constexpr std::int64_t usual_batches = 4;

/// The options of a translation beyond the config.
struct TranslateRequest {
  std::span<const std::int64_t> numbers =
      {};  ///< numbers of the sentences; by default their indices
  std::span<const std::vector<std::int32_t>> prefixes = {};  ///< first tokens of each output
  std::int64_t nbest = 1;  ///< hypotheses per sentence: the best of the beam, or samples
  std::int64_t batches = usual_batches;
};

/// Translates every source of a dataset, of any kind of input, in batches of similar lengths on the
/// workers: minimum `batches` batches, unless they would have fewer than 32 hypotheses. Each
/// sentence's result is a function of the sentence, the options, the seed and, when sampling, the
/// sentence's number: its index in the dataset, unless `numbers` is given. In bf16 it also depends
/// on the batches: small products remain in float32 (autograd/kernels/gemm/bf16.h).
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
/// options.max_length tokens. If prompt and continuation exceed the model's context, decoding
/// continues from the last half. The prompt is read in one pass. With a beam of one, `on_token`
/// receives each token as soon as it is final.
std::vector<std::int32_t> continue_text(const FrozenModel& frozen,
                                        std::span<const std::int32_t> prompt,
                                        const DecodeOptions& options, std::uint64_t seed,
                                        std::int64_t number,
                                        const std::function<void(std::int32_t)>& on_token = {});
/// The hypotheses of a continuation, the best first, `beam` of them. The first is the result of
/// continue_text. Throws Error(usage) if prompt and continuation can exceed the model's
/// context.
std::vector<Hypothesis> continuations(const FrozenModel& frozen,
                                      std::span<const std::int32_t> prompt,
                                      const DecodeOptions& options, std::uint64_t seed,
                                      std::int64_t number);

/// log p of each target sequence with its </s>, given its source: natural logarithms, without
/// length normalisation. They do not depend on the other sequences of the batch.
std::vector<double> score_targets(const FrozenModel& frozen, std::span<const Batch> batches,
                                  std::int64_t count, Team& team);

HEED_END
