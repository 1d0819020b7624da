#pragma once
/// Decoding: greedy search, beam search and sampling with a trained model.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "autograd/base/team.h"
#include "autograd/kernels/fast/gemm/packed.h"
#include "data/batches/batch.h"
#include "data/batches/dataset.h"
#include "nn/models/model.h"
#include "train/config/options.h"
#include "train/distributed/workers.h"

HEED_BEGIN

struct Hypothesis {
  std::vector<std::int32_t> tokens;  ///< ids, without <s> and </s>
  double log_prob = 0;               ///< Σ log p, including </s> if the search reached it
  double score = 0;  ///< log_prob / ((5 + n) / 6)^α, where n is the number of tokens, including
                     ///< </s> if the search reached it (Wu et al. 2016, section 7)
  bool cut = false;  ///< whether the maximum length ended the hypothesis before </s>

  static auto members(auto& self) {
    return std::tie(self.tokens, self.log_prob, self.score, self.cut);
  }
};

/// Extends hypotheses token by token until each is finished. A finished hypothesis keeps its place
/// in the beam of its sentence. When all hypotheses in the beam are finished, the sentence is
/// removed from the batch. Candidates of equal probability are ordered by their parent hypothesis,
/// then by their token. Probabilities are computed after the repetition penalty. While a hypothesis
/// has fewer than min_length tokens, </s> has probability 0.
class Search {
 public:
  /// `limit`: the maximum number of tokens of a hypothesis; `numbers`: the numbers of the
  /// sentences, which are part of the random keys of sampling.
  Search(const DecodeOptions& options, std::int64_t limit, std::uint64_t seed,
         std::vector<std::int64_t> numbers, const SpecialIds& special = {})
      : options_(options),
        special_(special),
        limit_(limit),
        seed_(seed),
        numbers_(std::move(numbers)) {}

  /// Makes the hypotheses of sentence i begin with prefixes[i], whose tokens contribute to their
  /// log-probabilities.
  void begin_with(std::vector<std::vector<std::int32_t>> prefixes) {
    prefixes_ = std::move(prefixes);
  }
  /// Sets an earlier part of the output, whose tokens are also subject to the repetition penalty.
  void follow(std::span<const std::int32_t> earlier) {
    earlier_.assign(earlier.begin(), earlier.end());
  }
  /// Sets a callback that receives each token as soon as it is final; requires one sentence. A
  /// search with a beam wider than one never calls it; sampling always has a beam of one.
  void on_token(std::function<void(std::int32_t)> callback) { on_token_ = std::move(callback); }

  /// `decoding` has one hypothesis per sentence and has read each prompt except its last token;
  /// `tokens` contains the last token of each prompt. Returns 1 to `beam` hypotheses of each
  /// sentence, by descending score.
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

  /// Whether the search excludes this token: <s> and <unk> represent no text.
  bool forbidden(std::int64_t token) const {
    return token != special_.eos && special_.contains(token);
  }

  DecodeOptions options_;
  SpecialIds special_;
  std::int64_t limit_;
  std::uint64_t seed_;
  std::vector<std::int64_t> numbers_;
  std::vector<Live> live_;
  std::vector<std::vector<Hypothesis>> finished_;  // finished hypotheses of each sentence
  std::vector<std::vector<std::int32_t>> prefixes_;
  std::vector<std::int32_t> earlier_;
  std::function<void(std::int32_t)> on_token_;
};

/// A model whose weights do not change during this object's lifetime, so decoding packs them once
/// for all steps. The packed weights need as much memory as the weights (bf16: half of it, int8: a
/// quarter).
/// The model must outlive this object.
struct FrozenModel {
  /// Throws std::bad_cast if the model is not Generative. The packed weights have this precision.
  explicit FrozenModel(const Model& frozen, DecodePrecision precision = DecodePrecision::float32,
                       const SpecialIds& ids = {});
  const Generative& model;
  SpecialIds special;  ///< of the vocabulary in which the model writes
  mutable kernels::PackedWeights weights;
};

/// The default number of batches of translate(). It is independent of the number of threads,
/// because results that depend on the batches must not depend on the machine.
inline constexpr std::int64_t usual_batches = 4;

/// The maximum number of tokens of a translation: options.max_length or, if smaller, the number of
/// positions of the model; 0 positions: no limit.
std::int64_t output_limit(const DecodeOptions& options, std::int64_t positions);

/// The options of a translation that are not in the config.
struct TranslateRequest {
  /// The numbers of the sentences; by default, their indices in the dataset.
  std::span<const std::int64_t> numbers = {};
  std::span<const std::vector<std::int32_t>> prefixes = {};  ///< first tokens of each output
  std::int64_t nbest = 1;  ///< maximum number of hypotheses per sentence, or number of samples
  std::int64_t batches = usual_batches;
};

/// Translates every source of a dataset (of any kind of input) on the workers, in batches of
/// sources of similar length. There are about request.batches batches: fewer if each would have
/// fewer than 32 hypotheses, more if one would exceed options.batch_sequences hypotheses. Each
/// sentence's result is a function of the sentence, its prefix, the options, the seed and, when
/// sampling, the sentence's number. In bf16, the result also depends on the batches, because small
/// products remain in float32 (autograd/kernels/fast/gemm/bf16.h).
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

/// Continues a prompt with a language model by up to options.max_length tokens; an empty prompt is
/// replaced by </s>. When the text exceeds the model's context, decoding continues from its last
/// context / 2 tokens. The model reads the prompt in one pass. With a beam of one, as in sampling,
/// `on_token` receives each token as soon as it is final. Returns the continuation. `number`, the
/// number of the prompt, is part of the random keys of sampling. If `team` is not null, its threads,
/// which must be idle, share the products; this does not change the result.
std::vector<std::int32_t> continue_text(const FrozenModel& frozen,
                                        std::span<const std::int32_t> prompt,
                                        const DecodeOptions& options, std::uint64_t seed,
                                        std::int64_t number,
                                        const std::function<void(std::int32_t)>& on_token = {},
                                        Team* team = nullptr);
/// The hypotheses of a continuation by descending score: 1 to `beam` or, when sampling, 1. The
/// first is the result of continue_text. Throws Error(usage) if prompt and continuation can exceed
/// the model's context.
std::vector<Hypothesis> continuations(const FrozenModel& frozen,
                                      std::span<const std::int32_t> prompt,
                                      const DecodeOptions& options, std::uint64_t seed,
                                      std::int64_t number);

/// Element i is the natural logarithm of the probability, without length normalisation, of the
/// labels of the target sequence whose entry in Batch::samples is i, given its source, if any.
/// `count` is the number of sequences in all batches. A score does not depend on the other
/// sequences of the batch.
std::vector<double> score_targets(const FrozenModel& frozen, std::span<const Batch> batches,
                                  std::int64_t count, Team& team);

HEED_END
