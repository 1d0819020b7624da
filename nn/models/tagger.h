#pragma once
#include "nn/models/model.h"

HEED_BEGIN

/// A model that gives each row of the source a label. Its loss is the label-smoothed cross-entropy
/// of the labels.
class Tagger : public Model {
 public:
  /// [source rows, labels]
  virtual Tensor logits(const Rows& rows, Pass& pass) const = 0;
};

/// An encoder and a projection to labels.
std::unique_ptr<Tagger> make_tagger(const ModelOptions& options, std::int64_t vocabulary,
                                    std::int64_t labels, std::uint64_t seed);

HEED_END
