#pragma once
/// The interface of a model: parameters and the loss of a batch; a generative model also has logits
/// and decoding.
#include <memory>
#include <optional>
#include <span>

#include "autograd/ops/basic.h"
#include "nn/context.h"
#include "nn/layers/norm.h"
#include "nn/linear.h"
#include "nn/models/architecture.h"
#include "nn/option_kinds.h"
#include "nn/parameters.h"

HEED_BEGIN

/// One side of a batch: concatenated sequences of token ids or of rows of features.
struct SideView {
  std::span<const std::int32_t> ids;
  Offsets offsets;
  std::span<const float> features = {};  ///< [rows, width], used in place of ids
  std::int64_t width = 0;

  /// Rows [begin, end). `part_offsets`: the offsets of their sequences, counted from `begin`.
  SideView part(std::int64_t begin, std::int64_t end, Offsets part_offsets) const {
    if (width == 0) return {ids.subspan(begin, end - begin), part_offsets};
    return {{}, part_offsets, features.subspan(begin * width, (end - begin) * width), width};
  }
};

/// The feature rows of a side: [rows, width].
Tensor rows_of_features(const SideView& side);

/// The input of a model: a batch. For a language model, the source is empty; for a classifier, the
/// target.
struct ModelInput {
  SideView source, target;
  std::span<const std::int32_t> labels = {};  ///< labels that the loss compares with the logits
  Lanes lanes = {};                           ///< used by a model with a segment memory
};

/// Logits that the loss computes in chunks of rows: rows Wᵀ + b. Each label has one row, or two
/// with R-Drop.
struct DeferredLogits {
  Tensor rows;
  Linear output;
};

/// The input of a student's loss (distilled_cross_entropy): the logits of its teacher for the same
/// batch, which receive no gradient; the weight of the divergence in the loss; and the temperature.
struct Distillation {
  DeferredLogits teacher;
  double share = 0.5, temperature = 1;
};

struct LossOptions {
  double label_smoothing = 0;
  double divisor = 1;            ///< divides the sum of the losses of all labels
  LossCounts* counts = nullptr;  ///< if not null, the loss adds its sums and counts to it
  /// The weight of the R-Drop divergence (rdrop_cross_entropy). If set, the second half of the rows
  /// repeats the sequences of the first half, and only the first half has labels.
  std::optional<double> rdrop = std::nullopt;
  std::optional<Distillation> distillation = std::nullopt;  ///< incompatible with rdrop
};

/// The loss of deferred logits. Rows with the label ignored_target are not projected.
Tensor deferred_loss(const DeferredLogits& logits, std::span<const std::int32_t> labels,
                     const LossOptions& options);

class Model {
 public:
  virtual ~Model() = default;
  /// The trained tensors, in a fixed order.
  virtual Parameters parameters() const = 0;
  /// The statistics of the batch norms.
  virtual std::vector<NamedStatistics> statistics() const { return {}; }
  /// The untrained tensors: by default, the running statistics of the batch norms.
  virtual Parameters buffers() const;
  /// The tensors that a checkpoint contains: parameters, then buffers.
  Parameters state() const;
  /// The loss of a batch, a scalar: the sum over all labels, divided by options.divisor.
  virtual Tensor loss(const ModelInput& input, const LossOptions& options, Pass& pass) const = 0;
  /// The logits that the loss compares with the labels, deferred. Throws Error(failed) for a model
  /// that overrides only loss(); such a model can be neither a teacher nor a student.
  virtual DeferredLogits deferred_logits(const ModelInput& input, Pass& pass) const;
  /// A new, empty segment memory, if the model uses one (ModelOptions::memory).
  virtual std::optional<SegmentMemory> segment_memory() const { return std::nullopt; }
  /// The maximum number of positions of a sequence; 0: no limit.
  virtual std::int64_t position_limit() const = 0;
};

/// The hypotheses of a decoding run: token sequences of equal length. Each step appends one token
/// to each of them.
class Decoding {
 public:
  virtual ~Decoding() = default;
  /// Appends tokens[i] to hypothesis i. Returns the logits of the next token: [hypotheses,
  /// vocabulary]. Throws Error(failed) if the number of tokens is not that of the hypotheses.
  virtual Array step(std::span<const std::int32_t> tokens) = 0;
  /// Appends a prompt to every hypothesis (Mixer::prefill). Throws Error(failed) if a step or a
  /// non-empty prompt has preceded it, or if the model reads a source.
  virtual void prefill(std::span<const std::int32_t> tokens) = 0;
  /// New hypothesis i continues old hypothesis parents[i]; the number of hypotheses may change.
  /// Throws Error(failed) if a parent does not exist.
  virtual void select(std::span<const std::int32_t> parents) = 0;
};

/// A model that generates tokens: an optional encoder, a decoder and an output projection.
class Generative : public Model {
 public:
  /// The input of the decoder's cross-attention; empty for a language model.
  virtual EncoderOutput encode(const SideView& source, Pass& pass) const;
  /// The rows of the decoder before the output projection: n ids → [n, d].
  virtual Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const = 0;
  /// The projection to logits: weight [vocabulary, d], bias [vocabulary] or undefined.
  virtual const Linear& output() const = 0;

  /// decoder_rows of a whole batch: [target tokens, d].
  Tensor hidden(const ModelInput& input, Pass& pass) const;
  DeferredLogits deferred_logits(const ModelInput& input, Pass& pass) const final {
    return {hidden(input, pass), output()};
  }
  /// The logits: [target tokens, vocabulary].
  Tensor logits(const ModelInput& input, Pass& pass) const { return output()(hidden(input, pass)); }
  /// The result of deferred_loss, which computes the logits in chunks of rows.
  Tensor loss(const ModelInput& input, const LossOptions& options, Pass& pass) const final;
  /// Begins decoding with `count` hypotheses. If there is a source, `count` must be the number of
  /// its sequences, one for each hypothesis. With `cached` false, each step runs the model on all
  /// tokens so far: a slow reference for tests of the cache. The model must outlive the result.
  std::unique_ptr<Decoding> decode(const SideView& source, std::int64_t count,
                                   bool cached = true) const;
};

/// An encoder-decoder model. Source and target share an embedding table if options.tie_embeddings
/// and `shared_vocabulary` are true, the vocabularies have equal sizes, and the source consists of
/// tokens (options.input_width 0).
std::unique_ptr<Generative> make_seq2seq(const ModelOptions& options,
                                         std::int64_t source_vocabulary,
                                         std::int64_t target_vocabulary, bool shared_vocabulary,
                                         std::uint64_t seed);
/// A decoder-only language model.
std::unique_ptr<Generative> make_language_model(const ModelOptions& options,
                                                std::int64_t vocabulary, std::uint64_t seed);
/// A newly initialised model of the given architecture.
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
