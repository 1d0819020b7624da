#pragma once
/// The architectures of models, as plain values; used by both builds.
#include <cstdint>

namespace heed {

/// The parts of a model: an encoder of the source, a decoder of the target, or both. A model with
/// only an encoder is a classifier: with `encoder` it labels rows, with `encoder_of_sequences` it
/// labels sequences, and with `encoder_of_tokens` it predicts the token of each row (Labelling,
/// nn/models/classifier.h).
enum class Architecture {
  encoder_decoder,
  decoder,
  encoder,
  encoder_of_sequences,
  encoder_of_tokens
};
constexpr bool has_encoder(Architecture a) { return a != Architecture::decoder; }
constexpr bool has_decoder(Architecture a) {
  return a == Architecture::encoder_decoder || a == Architecture::decoder;
}

/// The numbers of tokens in the vocabularies; for a classifier, `target` is the number of labels.
/// `shared`: source and target share one vocabulary.
struct VocabularySizes {
  std::int64_t source = 0, target = 0;
  bool shared = true;
};

}  // namespace heed
