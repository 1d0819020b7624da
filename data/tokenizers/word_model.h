#pragma once
/// Models of the library tokenizers that cut a word into pieces of a given vocabulary.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/io/formats/json_fields.h"

namespace heed {

/// The maximum number of ids. (The largest vocabularies have 260,000.)
inline constexpr std::int64_t most_pieces = 2'000'000;

class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the ids of a word.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
  /// The text of each id; "" for ids without a piece.
  const std::vector<std::string>& pieces() const { return pieces_; }

 protected:
  std::vector<std::string> pieces_;
};

/// Byte-level byte-pair encoding: Sennrich, Haddow and Birch, "Neural machine translation of rare words
/// with subword units", 2016; on bytes: Radford et al., "Language models are unsupervised multitask
/// learners", 2019. A word is a sequence of bytes; the pair of neighbours with the lowest rank is merged
/// until no pair has a rank. Pieces are bytes, not the characters that represent them in the file.
/// Both functions read the object "model" of tokenizer.json, and throw Error(bad_input) for what
/// they cannot honour.
std::unique_ptr<WordModel> byte_pair_model(JsonFields& model);

/// WordPiece (Devlin et al., "BERT", 2019): the longest piece that begins the word, then the longest
/// one, with a prefix, that continues it, …. A word that has no such pieces is unknown.
std::unique_ptr<WordModel> wordpiece_model(JsonFields& model);

/// The characters that represent the bytes in a vocabulary of byte-level BPE: printable characters of
/// Latin-1 represent themselves, all other bytes the characters from U+0100 on.
const std::vector<std::string>& byte_characters();

}  // namespace heed
