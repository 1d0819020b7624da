#pragma once
/// The file of a SentencePiece model: a message of Protocol Buffers (sentencepiece_model.proto of
/// github.com/google/sentencepiece).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// heed's extension of the format (field 200 of the message, in the range for other programs), which
/// imported models contain.
struct PieceUse {
  bool starts_text = false;  ///< a language model reads bos before every text
  /// The size of the vocabulary in which the pieces of a text are looked up; 0: they are not looked up.
  /// Pieces of the model beyond this size become <unk>.
  std::uint64_t ids = 0;
};

struct PieceModel {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;     ///< by id
  bool bpe = false;              ///< false: unigram model
  std::string character_map;     ///< the normaliser's map (Precompiled in tokenizers); "": identity
  bool add_dummy_prefix = true;  ///< a space precedes the text
  bool escape_whitespaces = true;         ///< spaces become U+2581
  bool whitespace_as_suffix = false;      ///< a space belongs to the piece before it
  bool remove_extra_whitespaces = true;   ///< at both ends, and all but one of several spaces
  std::string bos = "<s>", eos = "</s>";  ///< control pieces that begin and end sequences
  PieceUse use = {};
};

/// Reads the bytes of a model in which flaw_in_piece_model finds no flaw. Throws Error(bad_input) if
/// its type is neither unigram nor BPE.
PieceModel read_piece_model(std::string_view proto);

std::optional<PieceUse> read_piece_use(std::string_view proto);

/// The bytes of a model, the inverse of read_piece_model.
std::string write_piece_model(const PieceModel& model);

/// The error in the file of a SentencePiece model, or "". The library does not check files, but
/// requires that the protocol buffer is complete and contains pieces without NUL and the
/// specifications of the trainer and the normaliser, and that the character maps of its normalisers
/// contain no offset out of range.
std::string flaw_in_piece_model(std::string_view proto);

}  // namespace heed
