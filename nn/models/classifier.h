#pragma once
#include "nn/models/model.h"

HEED_BEGIN

/// A model that assigns a label to each row of the source, or to each sequence. Its loss is the
/// label-smoothed cross-entropy of the labels; a row whose label is ignored_target is not
/// projected.
class Classifier : public Model {
 public:
  /// A label for each sequence. In a batch, it is the label of the sequence's first row; the other
  /// rows have none.
  virtual bool of_sequences() const = 0;
  /// [source rows, labels], or [sequences, labels]
  virtual Tensor logits(const ModelInput& input, Pass& pass) const = 0;
};

/// What a classifier's labels belong to, and where they come from.
enum class Labelling {
  rows,       ///< a label for each row
  sequences,  ///< a label for each sequence, from options.pool
  tokens,     ///< the row's own token: masked language modelling. The labels are the vocabulary.
};

/// An encoder and a projection to labels. With Labelling::tokens and tied embeddings, the
/// projection is the embedding table.
std::unique_ptr<Classifier> make_classifier(const ModelOptions& options, Labelling labelling,
                                            std::int64_t vocabulary, std::int64_t labels,
                                            std::uint64_t seed);

HEED_END
