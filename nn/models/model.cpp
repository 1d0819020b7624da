#include "nn/models/model.h"

#include "nn/models/tagger.h"

HEED_BEGIN

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
