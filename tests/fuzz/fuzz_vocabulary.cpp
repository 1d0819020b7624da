/// Vocabulary files: a byte for the kind (c, b or w: characters, bytes, words), then the file.
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/fuzz/target.h"

namespace heed::fuzz {
namespace {

TokenizerKind kind_of(unsigned char byte) {
  return byte == 'b'   ? TokenizerKind::bytes
         : byte == 'w' ? TokenizerKind::words
                       : TokenizerKind::characters;
}

/// Checks the ids of the encoded text. Except with a vocabulary of words, a text without unknown
/// pieces must survive a round trip.
void require_text_works(const Tokenizer& tokenizer, std::string_view text) {
  bool unknown = false;
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    require(id == Tokenizer::unk || (id > Tokenizer::eos && id < tokenizer.size()),
            "ids are in the vocabulary and not special");
    unknown = unknown || id == Tokenizer::unk;
  }
  const std::string back = tokenizer.decode(ids);
  if (unknown || tokenizer.kind() == TokenizerKind::words) return;
  require(back == text, "a text without unknown pieces survives a round trip");
}

void require_works(const Tokenizer& tokenizer, std::string_view text) {
  const auto again = load_tokenizer(tokenizer.save(scratch() / "again"), tokenizer.kind());
  require(again->size() == tokenizer.size(), "a saved vocabulary has the same number of pieces");
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    require(again->piece(id) == tokenizer.piece(id), "a saved vocabulary has the same pieces");
    if (id > Tokenizer::eos) require_text_works(tokenizer, tokenizer.piece(id));
  }
  require_text_works(tokenizer, text);
}

}  // namespace

void target(std::string_view input) {
  Bytes bytes(input);
  const TokenizerKind kind = kind_of(bytes.byte());
  const std::filesystem::path path = put("x.vocab", bytes.rest());
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(path, kind);
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, path.string() + ":");
    throw;
  }
  must_work([&] { require_works(*tokenizer, bytes.rest()); });
}

}  // namespace heed::fuzz
