#include "data/tokenizers/piece_model.h"

#include <cstdint>
#include <cstring>

#include <sentencepiece_processor.h>

#include "data/tokenizers/tokenizer.h"
#include "tests/data/support.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(piece_model)

namespace {

/// A protocol buffer field of less than 2^14 bytes: number and type, length, bytes.
std::string field(unsigned number, const std::string& bytes) {
  const char head[] = {static_cast<char>(number << 3 | 2),
                       static_cast<char>(0x80 | (bytes.size() & 0x7F)),
                       static_cast<char>(bytes.size() >> 7)};
  return std::string(head, sizeof head) + bytes;
}

/// A character map of 256 nodes, all 0 except number 5, which is `node`, and the texts "a" and
/// "bc".
std::string character_map(std::uint32_t node) {
  std::string map(4 + 1024, '\0');
  const std::uint32_t size = 1024;
  std::memcpy(map.data(), &size, 4);
  std::memcpy(map.data() + 4 + 5 * 4, &node, 4);
  return map + std::string("a\0bc\0", 5);
}

const std::string pieces = field(1, field(1, "x")), trainer = field(2, "x");

std::string flaw_of_map(unsigned normaliser, std::uint32_t node) {
  return flaw_in_piece_model(pieces + trainer + field(3, "") +
                             field(normaliser, field(2, character_map(node))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(incomplete_model_is_refused) {
  const std::string cut = "not a sentencepiece model, or truncated";
  BOOST_TEST(flaw_in_piece_model(pieces + trainer + field(3, "")) == "");
  BOOST_TEST(flaw_in_piece_model(pieces + trainer) == cut);
  BOOST_TEST(flaw_in_piece_model(pieces + field(3, "")) == cut);
  BOOST_TEST(flaw_in_piece_model(trainer + field(3, "")) == cut);
  BOOST_TEST(flaw_in_piece_model("") == cut);
  BOOST_TEST(flaw_in_piece_model(pieces + trainer + field(3, "") + "\x0A\x05") == cut);
}

BOOST_AUTO_TEST_CASE(piece_with_nul_byte_or_without_text_is_refused) {
  const std::string broken = "not a sentencepiece model (one of its pieces is broken)";
  const auto flaw_of = [](const std::string& piece) {
    return flaw_in_piece_model(pieces + field(1, piece) + trainer + field(3, ""));
  };
  BOOST_TEST(flaw_of(field(1, "ab")) == "");
  BOOST_TEST(flaw_of(field(9, std::string(1, '\0')) + field(1, "ab")) ==
             "");  // field 9 is not text
  BOOST_TEST(flaw_of(field(1, std::string("\0", 1))) == broken);
  BOOST_TEST(flaw_of(field(1, std::string("a\0b", 3))) == broken);
  BOOST_TEST(flaw_of(field(1, "ab") + field(1, std::string("a\0", 2))) ==
             broken);                         // the last text is used
  BOOST_TEST(flaw_of("\x08\x05") == broken);  // a number in place of text
  BOOST_TEST(flaw_of("\xFF") == broken);
}

BOOST_AUTO_TEST_CASE(character_map_offset_out_of_range_is_refused) {
  const std::string broken = "not a sentencepiece model (its character map is broken)";
  for (const unsigned normaliser : {3u, 5u}) {  // normaliser and denormaliser
    BOOST_TEST(flaw_of_map(normaliser, 0) == "");
    BOOST_TEST(flaw_of_map(normaliser, 0x80000004u) == "");  // a value: the end of the last text
    BOOST_TEST(flaw_of_map(normaliser, 0x80000005u) == broken);       // a value beyond the texts
    BOOST_TEST(flaw_of_map(normaliser, 200u << 10) == "");            // children in the only block
    BOOST_TEST(flaw_of_map(normaliser, 300u << 10) == broken);        // children in a missing block
    BOOST_TEST(flaw_of_map(normaliser, 200u << 10 | 1u << 8) == "");  // a child with value 0
  }
  BOOST_TEST(flaw_in_piece_model(pieces + trainer + field(3, "\xFF\xFF\xFF")) == broken);
  const std::string no_nodes(8, '\0'), nodes_beyond("\0\4\0\0abcd", 8);
  for (const std::string& map : {no_nodes, nodes_beyond})
    BOOST_TEST(flaw_in_piece_model(pieces + trainer + field(3, field(2, map))) == broken);
}

// The library is an independent reader of the same file.
BOOST_AUTO_TEST_CASE(pieces_are_those_of_the_library) {
  for (const PieceAlgorithm algorithm : {PieceAlgorithm::unigram, PieceAlgorithm::bpe}) {
    for (const std::string end : {"", "\n"}) {  // with a newline: a continuous text
      TokenizerOptions options;
      options.kind = TokenizerKind::sentencepiece;
      options.algorithm = algorithm;
      options.vocab_size = 40;
      options.specials = {"<mask>"};
      const std::vector<std::string> lines(20, "low lower lowest new newer newest" + end);
      const std::string proto = train_tokenizer(options, lines, 1)->content();
      sentencepiece::SentencePieceProcessor library;
      BOOST_TEST(library.LoadFromSerializedProto(proto).ok());
      const PieceModel model = read_piece_model(proto);
      BOOST_TEST(model.bpe == (algorithm == PieceAlgorithm::bpe));
      BOOST_TEST(model.character_map.empty() == !end.empty());  // a text is not normalised
      BOOST_TEST(model.add_dummy_prefix == end.empty());
      BOOST_TEST(model.remove_extra_whitespaces == end.empty());
      BOOST_TEST_REQUIRE(std::ssize(model.pieces) == library.GetPieceSize());
      for (int id = 0; id < library.GetPieceSize(); ++id) {
        const PieceModel::Piece& piece = model.pieces[static_cast<std::size_t>(id)];
        BOOST_TEST(piece.text == library.IdToPiece(id));
        BOOST_TEST(piece.score == library.GetScore(id));
        BOOST_TEST((piece.type == PieceModel::Type::control) == library.IsControl(id));
        BOOST_TEST((piece.type == PieceModel::Type::unknown) == library.IsUnknown(id));
        BOOST_TEST((piece.type == PieceModel::Type::user_defined) == (piece.text == "\n"));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
