#include "nn/models/model.h"

#include "nn/models/tagger.h"

HEED_BEGIN

Tensor projected_loss(const Tensor& rows, const Linear& output,
                      std::span<const std::int32_t> labels, const LossOptions& options) {
  const auto smoothing = static_cast<real>(options.label_smoothing);
  if (options.rdrop) {
    return rdrop_cross_entropy(rows, output.weight, output.bias, labels, smoothing,
                               static_cast<real>(*options.rdrop), options.normalizer,
                               options.counts);
  }
  return projected_cross_entropy(rows, output.weight, output.bias, labels, smoothing,
                                 options.normalizer, options.counts);
}

std::unique_ptr<Model> make_model(Architecture architecture, const ModelOptions& options,
                                  const VocabularySizes& vocabulary, std::uint64_t seed) {
  switch (architecture) {
    case Architecture::encoder_decoder:
      return make_seq2seq(options, vocabulary.source, vocabulary.target, vocabulary.shared, seed);
    case Architecture::decoder:
      return make_language_model(options, vocabulary.target, seed);
    case Architecture::encoder:
      return make_tagger(options, vocabulary.source, vocabulary.target, seed);
  }
  return nullptr;
}

HEED_END
