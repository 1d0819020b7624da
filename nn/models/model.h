#pragma once
/// What the program needs of any model: a loss for training, rows of logits, and decoding by steps.
#include <memory>
#include <span>
#include <vector>

#include "autograd/ops.h"
#include "nn/parameters.h"
#include "nn/pass.h"

HEED_BEGIN

/// Sequences end to end, as a model reads them (views of a batch). A language model has no source.
struct Rows {
  std::span<const std::int32_t> source, source_offsets;
  std::span<const std::int32_t> target_in, target_offsets;
};

/// Hypotheses being decoded: one sequence of tokens each, growing together, one token a step.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Appends tokens[i] to hypothesis i and returns the logits of what follows: [hypotheses,
  /// vocabulary].
  virtual Array step(std::span<const std::int32_t> tokens) = 0;
  /// Hypothesis i becomes a continuation of old hypothesis parents[i]; there may be more or fewer.
  virtual void select(std::span<const std::int32_t> parents) = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Parameters parameters() const = 0;
  /// The decoder's last rows, before the output projection: [target tokens, d].
  virtual Tensor hidden(const Rows& rows, Pass& pass) const = 0;
  virtual const Tensor& output_weight() const = 0;  ///< [vocabulary, d]
  virtual const Tensor& output_bias() const = 0;    ///< [vocabulary] or undefined
  /// Begins decoding: one hypothesis for each source sequence (seq2seq) or `count` of them (lm).
  virtual std::unique_ptr<Decoding> decode(std::span<const std::int32_t> source,
                                           std::span<const std::int32_t> source_offsets,
                                           std::int64_t count) const = 0;
  /// Positions a sequence may have; 0 where there is no limit.
  virtual std::int64_t position_limit() const = 0;

  Tensor logits(const Rows& rows, Pass& pass) const {
    return affine(hidden(rows, pass), output_weight(), output_bias());
  }
  /// Σ label-smoothed cross-entropy of the targets / normalizer.
  Tensor loss(const Rows& rows, std::span<const std::int32_t> targets, double smoothing,
              double normalizer, Pass& pass, LossCounts* counts = nullptr) const {
    return projected_cross_entropy(hidden(rows, pass), output_weight(), output_bias(), targets,
                                   static_cast<real>(smoothing), normalizer, counts);
  }
};

/// An encoder-decoder model. Equal vocabularies and `shared` mean one table for source and target.
std::unique_ptr<Model> make_seq2seq(const ModelOptions& options, std::int64_t source_vocabulary,
                                    std::int64_t target_vocabulary, bool shared_vocabulary,
                                    std::uint64_t seed);
/// A decoder-only language model.
std::unique_ptr<Model> make_language_model(const ModelOptions& options, std::int64_t vocabulary,
                                           std::uint64_t seed);

HEED_END
