// The tokenizer.json of exported models.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "data/tokenizers/piece_model.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"
#include "train/exchange/tokenizer_json.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_AUTO_TEST_CASE(tokenizers_have_the_pipeline_of_their_kind) {
  const std::vector<std::string> lines{"low lower", "lowest low", "newer new"};
  const auto characters = tokenizer_of(TokenizerKind::characters, lines);
  const auto json = tokenizer_json(*characters, {});
  BOOST_TEST(json["model"]["type"] == "WordLevel");
  BOOST_TEST(json["model"]["vocab"]["w"] == characters->encode("w").front());
  BOOST_TEST(json["post_processor"].is_null());
  BOOST_TEST(json["added_tokens"].size() == 3);
  BOOST_TEST(json["normalizer"].is_null());
  const auto words = tokenizer_of(TokenizerKind::words, lines);
  BOOST_TEST(tokenizer_json(*words, {})["model"]["vocab"]["lowest"] ==
             words->encode("lowest").front());
  HEED_CHECK_ERROR(Exit::usage, "contains \"<s>\" as a word and as a special piece",
                   tokenizer_json(*tokenizer_of(TokenizerKind::words, {"a <s> b"}), {}));
  const auto with_end = tokenizer_json(*characters, {.end_token = true, .lowercase = true});
  BOOST_TEST(with_end["post_processor"]["single"][1]["SpecialToken"]["id"] == "</s>");
  BOOST_TEST(with_end["normalizer"]["normalizers"][0]["type"] == "Lowercase");
  BOOST_TEST(with_end["post_processor"]["pair"].size() == 3);  // A B </s>
  const auto framed = tokenizer_json(*characters, {.start_token = true, .end_token = true});
  std::string template_of_pair;  // of a classifier: the second text and its end are segment 1
  for (const auto& part : framed["post_processor"]["pair"]) {
    const nlohmann::json& item = part.begin().value();
    template_of_pair += item["id"].get<std::string>() + item["type_id"].dump() + " ";
  }
  BOOST_TEST(template_of_pair == "<s>0 A0 </s>0 B1 </s>1 ");
  BOOST_TEST(framed["post_processor"]["single"].size() == 3);
  BOOST_TEST(framed["post_processor"]["special_tokens"]["<s>"]["ids"][0] == Tokenizer::bos);

  // Radford et al. 2019: a space is Ġ (U+0120), a newline Ċ (U+010A), and "A" itself.
  const auto bytes = tokenizer_of(TokenizerKind::bytes, lines);
  const auto vocabulary = tokenizer_json(*bytes, {})["model"]["vocab"];
  BOOST_TEST(vocabulary["\u0120"] == bytes->encode(" ").front());
  BOOST_TEST(vocabulary["\u010A"] == bytes->encode("\n").front());
  BOOST_TEST(vocabulary["A"] == bytes->encode("A").front());
  BOOST_TEST(vocabulary["\u0143"] == bytes->encode("\xAD").front());  // the last of the 68
  BOOST_TEST(vocabulary.size() == 256 + 3);
}

// SentencePiece puts a space before the text and joins spaces; a run of unknown characters is one <unk>. The values are
// those that transformers writes when it converts a model of SentencePiece.
BOOST_AUTO_TEST_CASE(pieces_have_the_pipeline_of_sentencepiece) {
  const std::vector<std::string> lines(20, "low lower lowest new newer newest");
  for (const PieceAlgorithm algorithm : {PieceAlgorithm::unigram, PieceAlgorithm::bpe}) {
    TokenizerOptions options;
    options.kind = TokenizerKind::sentencepiece;
    options.algorithm = algorithm;
    options.vocab_size = 30;
    const auto tokenizer = train_tokenizer(options, lines, 1);
    const nlohmann::json json = tokenizer_json(*tokenizer, {});
    BOOST_TEST((json["pre_tokenizer"] == nlohmann::json{{"type", "Metaspace"},
                                                        {"replacement", "\u2581"},
                                                        {"prepend_scheme", "always"},
                                                        {"split", false}}));
    const nlohmann::json& normalisers = json["normalizer"]["normalizers"];
    const nlohmann::json strip{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}},
        join{{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}};
    BOOST_REQUIRE(normalisers.size() >= 2);
    BOOST_TEST((normalisers[normalisers.size() - 2] == strip));
    BOOST_TEST((normalisers.back() == join));
    const nlohmann::json& decoders = json["decoder"]["decoders"];
    BOOST_TEST((decoders[0] == nlohmann::json{{"type", "Replace"},
                                              {"pattern", {{"String", "\u2581"}}},
                                              {"content", " "}}));
    BOOST_TEST(decoders[1]["type"] == "Fuse");
    BOOST_TEST((decoders[2]["type"] == "Strip" && decoders[2]["content"] == " "));
    BOOST_TEST(decoders[2]["start"] > 0);
    const nlohmann::json& model = json["model"];
    BOOST_TEST(model["byte_fallback"] == false);
    const PieceModel own = read_piece_model(tokenizer->content());
    for (std::size_t id = 0; id < own.pieces.size(); ++id) {
      if (algorithm == PieceAlgorithm::bpe) {
        BOOST_TEST(model["vocab"][own.pieces[id].text] == id);
      } else {
        BOOST_TEST(model["vocab"][id][0] == own.pieces[id].text);
        BOOST_TEST(model["vocab"][id][1] == own.pieces[id].score);
      }
    }
    if (algorithm == PieceAlgorithm::bpe) {
      BOOST_TEST(model["fuse_unk"] == true);
      BOOST_TEST(model["unk_token"] == "<unk>");
    } else {
      BOOST_TEST(model["unk_id"] == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(merges_reach_every_piece_in_the_order_of_scores) {
  TokenizerOptions options;
  options.kind = TokenizerKind::sentencepiece;
  options.algorithm = PieceAlgorithm::bpe;
  options.vocab_size = 30;
  const std::vector<std::string> lines(20, "low lower lowest new newer newest");
  const auto tokenizer = train_tokenizer(options, lines, 1);
  const auto model = tokenizer_json(*tokenizer, {})["model"];
  BOOST_TEST(model["type"] == "BPE");
  // Applies the merges in order, as the library does: the pair with the lowest rank first.
  for (const std::string text : {"lowest", "newer", "slow", "west"}) {
    std::vector<std::string> symbols{"\u2581"};
    for (const char c : text) symbols.emplace_back(1, c);
    for (bool merged = true; merged;) {
      merged = false;
      for (const auto& merge : model["merges"]) {
        for (std::size_t i = 0; i + 1 < symbols.size() && !merged; ++i) {
          if (symbols[i] != merge[0] || symbols[i + 1] != merge[1]) continue;
          symbols[i] += symbols[i + 1];
          symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          merged = true;
        }
        if (merged) break;
      }
    }
    std::vector<std::int32_t> ids;
    for (const std::string& symbol : symbols) ids.push_back(model["vocab"][symbol]);
    BOOST_TEST(ids == tokenizer->encode(text), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
