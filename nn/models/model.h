#pragma once
/// The interface of a model: parameters and the loss of a batch; for one that generates, also
/// logits and decoding.
#include <memory>
#include <optional>
#include <span>

#include "autograd/ops/cross_entropy.h"
#include "nn/context.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"
#include "nn/models/architecture.h"
#include "nn/parameters.h"

HEED_BEGIN

/// One side of a batch, sequences end to end: token ids, or rows of features.
struct SideView {
  std::span<const std::int32_t> ids;
  Offsets offsets;
  std::span<const float> features = {};  ///< [rows, width], in place of ids
  std::int64_t width = 0;

  /// The rows from `begin` to `end` − 1; `part_offsets` are their offsets.
  SideView part(std::int64_t begin, std::int64_t end, Offsets part_offsets) const {
    if (width == 0) return {ids.subspan(begin, end - begin), part_offsets};
    return {{}, part_offsets, features.subspan(begin * width, (end - begin) * width), width};
  }
};

/// The rows of features of a side: [rows, width]
Tensor rows_of_features(const SideView& side);

/// The input of a model: a batch. A model with one side only (a language model) has no source.
struct ModelInput {
  SideView source, target;
  std::span<const std::int32_t> labels = {};  ///< what the loss compares the logits with
  Lanes lanes = {};  ///< for a model with a segment memory (Model::segment_memory)
};

/// Logits that are not computed yet: rows Wᵀ + b, a row for each label. The loss computes them part by part.
struct DeferredLogits {
  Tensor rows;
  Linear output;
};

/// A student's loss (distilled_cross_entropy): its teacher's logits of the same batch, without a
/// graph.
struct Distillation {
  DeferredLogits teacher;
  double share = 0.5, temperature = 1;
};

struct LossOptions {
  double label_smoothing = 0;
  double divisor = 1;            ///< the sum over labels is divided by it
  LossCounts* counts = nullptr;  ///< receives the loss's counts, if not null
  /// The weight of R-Drop's divergence (rdrop_cross_entropy). If set, the rows hold every sequence
  /// twice: their second half repeats the first. The labels are not repeated.
  std::optional<double> rdrop = std::nullopt;
  std::optional<Distillation> distillation = std::nullopt;  ///< not together with rdrop
};

/// The loss of these logits. Those of rows with the label ignored_target are not computed.
Tensor deferred_loss(const DeferredLogits& logits, std::span<const std::int32_t> labels,
                     const LossOptions& options);

class Model {
 public:
  virtual ~Model() = default;
  /// The trained tensors, in a fixed order.
  virtual Parameters parameters() const = 0;
  /// The statistics of its batch norms.
  virtual std::vector<NamedStatistics> statistics() const { return {}; }
  /// Tensors of the model that are not trained: by default, the running means of its batch norms.
  virtual Parameters buffers() const;
  /// What a checkpoint holds of the model: parameters, then buffers.
  Parameters state() const;
  /// The loss of a batch, a scalar: Σ over labels / divisor.
  virtual Tensor loss(const ModelInput& input, const LossOptions& options, Pass& pass) const = 0;
  /// The logits that the loss compares with the labels, not computed yet. Throws Error(failed) if the
  /// model has none: it can then be neither a teacher nor a student.
  virtual DeferredLogits deferred_logits(const ModelInput& input, Pass& pass) const;
  /// A new, empty memory if the model uses one (ModelOptions::memory).
  virtual std::optional<SegmentMemory> segment_memory() const { return std::nullopt; }
  /// The maximum number of positions of a sequence; 0: no limit.
  virtual std::int64_t position_limit() const = 0;
};

/// Hypotheses being decoded: one sequence of tokens each, growing together, one token per step.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Appends tokens[i] to hypothesis i and returns the logits of the next token: [hypotheses,
  /// vocabulary].
  virtual Array step(std::span<const std::int32_t> tokens) = 0;
  /// Appends a prompt to every hypothesis, in one pass. Throws after the first step, and if the
  /// model has a source.
  virtual void prefill(std::span<const std::int32_t> tokens) = 0;
  /// Hypothesis i becomes a continuation of old hypothesis parents[i]; their number may change.
  /// Throws if there is no such hypothesis.
  virtual void select(std::span<const std::int32_t> parents) = 0;
};

/// A model that generates tokens: an optional encoder, a decoder, an output projection.
class Generative : public Model {
 public:
  /// What the decoder's cross-attention reads. Empty for a language model.
  virtual EncoderOutput encode(const SideView& source, Pass& pass) const;
  /// The decoder's last rows, before the output projection: n ids → [n, d].
  virtual Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const = 0;
  /// The projection to logits: weight [vocabulary, d], bias [vocabulary] or undefined.
  virtual const Linear& output() const = 0;

  /// decoder_rows of a whole batch: [target tokens, d].
  Tensor hidden(const ModelInput& input, Pass& pass) const;
  DeferredLogits deferred_logits(const ModelInput& input, Pass& pass) const final {
    return {hidden(input, pass), output()};
  }
  /// [target tokens, vocabulary]
  Tensor logits(const ModelInput& input, Pass& pass) const { return output()(hidden(input, pass)); }
  /// Label-smoothed cross-entropy; the logits of a batch never exist at once.
  Tensor loss(const ModelInput& input, const LossOptions& options, Pass& pass) const final;
  /// Begins decoding: one hypothesis for each source sequence, or `count` of them without a source.
  /// Without `cached`, each step runs the whole model on all tokens so far: slow, but a simple
  /// reference for testing the cache. The model must outlive the result; the source need not.
  std::unique_ptr<Decoding> decode(const SideView& source, std::int64_t count,
                                   bool cached = true) const;
};

/// An encoder-decoder model. Source and target have one table if embeddings are tied and
/// `shared_vocabulary` holds, with vocabularies of equal size.
std::unique_ptr<Generative> make_seq2seq(const ModelOptions& options,
                                         std::int64_t source_vocabulary,
                                         std::int64_t target_vocabulary, bool shared_vocabulary,
                                         std::uint64_t seed);
/// A decoder-only language model.
std::unique_ptr<Generative> make_language_model(const ModelOptions& options,
                                                std::int64_t vocabulary, std::uint64_t seed);
/// The model of that architecture, freshly initialised.
std::unique_ptr<Model> make_model(Architecture architecture, const ModelOptions& options,
                                  const VocabularySizes& vocabulary, std::uint64_t seed);

// ---- former names, for one release ---------------------------------------------------------

using Rows [[deprecated("use ModelInput")]] = ModelInput;
using Projected [[deprecated("use DeferredLogits")]] = DeferredLogits;
[[deprecated("use deferred_loss")]] inline Tensor projected_loss(
    const DeferredLogits& logits, std::span<const std::int32_t> labels,
    const LossOptions& options) {
  return deferred_loss(logits, labels, options);
}

HEED_END
