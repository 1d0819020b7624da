#pragma once
/// The kinds of model, as plain values. Used by both builds.
#include <cstdint>

namespace heed {

/// The parts of a model: an encoder of the source, a decoder of the target, or both. An encoder
/// alone labels its rows, its sequences, or its rows with their own tokens (Labelling,
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

/// Tokens that a model knows; for an encoder alone, `target` counts labels. `shared`: source and
/// target share one vocabulary.
struct VocabularySizes {
  std::int64_t source = 0, target = 0;
  bool shared = true;
};

}  // namespace heed
