#pragma once
#include "nn/models/model.h"

HEED_BEGIN

/// A model that assigns a label to each row or to each sequence of the source. Its loss is that of
/// deferred_loss; rows or sequences with the label ignored_target are skipped.
class Classifier : public Model {
 public:
  /// Whether the model labels sequences. If so, the label of a sequence is that of its first row in
  /// the batch, and the labels of its other rows are not read.
  virtual bool of_sequences() const = 0;
  /// The logits: [source rows, labels] or [sequences, labels].
  virtual Tensor logits(const ModelInput& input, Pass& pass) const = 0;
};

/// The items that a classifier labels.
enum class Labelling {
  rows,       ///< one label per row
  sequences,  ///< one label per sequence; options.pool reduces its rows to one
  tokens,     ///< masked language modelling: the label of a row is its original token
};

/// An encoder with a projection to labels. With Labelling::tokens and tied embeddings, the
/// projection is the embedding table.
std::unique_ptr<Classifier> make_classifier(const ModelOptions& options, Labelling labelling,
                                            std::int64_t vocabulary, std::int64_t labels,
                                            std::uint64_t seed);

HEED_END
