#include <sentencepiece_processor.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "data/tokenizers/piece_model.h"
#include "tests/train/support.h"
#include "train/exchange/import_parts.h"
#include "train/exchange/tokenizer_json.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(import_tokenizers)

namespace {

using Ids = std::vector<std::int32_t>;
using Folder = std::filesystem::path;
using Type = PieceModel::Type;

const std::vector<std::string> texts{"",          "ab",    "a ab  c", "abcab b",
                                     "x abba xx", "  ab ", "<a> c",   "bb ca"};

PieceModel::Piece special(const std::string& name) {
  return {name, 0, name == "<unk>" ? Type::unknown : Type::control};
}

/// A unigram model of the special pieces and some others, whose scores depend on `seed`.
PieceModel unigram(const std::vector<std::string>& specials, float seed,
                   const std::vector<std::string>& others = {"\u2581", "a", "b", "ab", "\u2581ab",
                                                             "\u2581a", "bb", "c", "ca"}) {
  PieceModel model;
  for (const std::string& name : specials) model.pieces.push_back(special(name));
  float score = -1;
  for (const std::string& text : others) model.pieces.push_back({text, score -= seed});
  return model;
}

/// The pieces of a text in the library.
std::vector<std::string> pieces_of(const std::string& model, const std::string& text) {
  sentencepiece::SentencePieceProcessor library;
  BOOST_REQUIRE(library.LoadFromSerializedProto(model).ok());
  std::vector<std::string> pieces;
  BOOST_REQUIRE(library.Encode(text, &pieces).ok());
  return pieces;
}

ImportedIds ids_of(SpecialIds special, std::int64_t size) { return {special, -1, false, size}; }

void check_pieces_refused(const Folder& folder, const ImportedIds& ids, TextRole role,
                          const std::string& reason) {
  HEED_CHECK_ERROR(Exit::bad_input, reason, import_tokenizer(folder, ids, role));
}

/// A folder with the files of T5: <pad> begins outputs, 3 further tokens, and 2 ids without a piece.
struct T5Folder {
  T5Folder() {
    put(temporary / "spiece.model", model);
    put(temporary / "tokenizer_config.json", R"({"tokenizer_class":"T5Tokenizer","extra_ids":3})");
  }
  ReadTokenizer read() const { return import_tokenizer(temporary.path, ids, TextRole::source); }

  TempFolder temporary;
  std::string model = write_piece_model(unigram({"<pad>", "</s>", "<unk>"}, 0.5F));
  ImportedIds ids = ids_of({-1, 0, 1}, 12 + 3 + 2);
};

}  // namespace

BOOST_AUTO_TEST_CASE(vocab_txt_of_bert_has_the_ids_of_the_library) {
  const auto golden =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/data/imported_golden.json"));
  int found = 0;
  for (const auto& [name, config] :
       {std::pair("bert-uncased", R"({"cls_token": {"content": "[CLS]", "special": true}})"),
        std::pair("bert-cased", R"({"do_lower_case": false})"),
        std::pair("bert-accents", R"({"do_lower_case": true, "strip_accents": false})")}) {
    for (const auto& tokens : golden["cases"]) {
      if (tokens["name"] != name) continue;
      const TempFolder folder;
      std::vector<std::string> pieces(tokens["size"].get<std::size_t>());
      for (const auto& [piece, id] : tokens["tokenizer"]["model"]["vocab"].items())
        pieces[id.get<std::size_t>()] = piece;
      std::string vocabulary;
      for (const std::string& piece : pieces)
        vocabulary += piece + (++found % 2 != 0 ? "\r\n" : "\n");
      put(folder / "vocab.txt", vocabulary);
      put(folder / "tokenizer_config.json", config);
      const auto read = import_tokenizer(folder.path, ids_of({-1, -1, -1}, std::ssize(pieces)),
                                         TextRole::labelled);
      BOOST_TEST((read.tokenizer->special_ids() == SpecialIds{1, 2, 3}));
      BOOST_TEST(read.tokenizer->special("<mask>").value() == 4);
      for (std::size_t i = 0; i < golden["lines"].size(); ++i)
        BOOST_TEST((read.tokenizer->encode(golden["lines"][i].get<std::string>()) ==
                    tokens["ids"][i].get<Ids>()),
                   name << ", line " << i);
    }
  }
  BOOST_TEST(found == 3 * 330);
}

BOOST_AUTO_TEST_CASE(rules_beside_vocab_txt_that_heed_does_not_have_are_refused) {
  const TempFolder folder;
  const ImportedIds ids = ids_of({-1, -1, -1}, 6);
  put(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na");
  for (const auto& [config, reason] :
       {std::pair(R"({"do_basic_tokenize": false})", "do_basic_tokenize is false"),
        std::pair(R"({"never_split": ["a"]})", "never_split is [\"a\"]"),
        std::pair(R"({"tokenizer_class": "BertJapaneseTokenizer"})", "tokenizer_class is"),
        std::pair(R"({"mask_token": "<m>"})", "mask_token is \"<m>\", which vocab.txt does not"),
        std::pair(R"({"do_lower_case": "yes"})", "\"lowercase\" must be true or false")}) {
    put(folder / "tokenizer_config.json", config);
    check_pieces_refused(folder.path, ids, TextRole::labelled, reason);
  }
  put(folder / "tokenizer_config.json", "{}");
  check_pieces_refused(folder.path, ids, TextRole::source, "puts the ids [2] before and [3] after");
  BOOST_TEST(import_tokenizer(folder.path, ids, TextRole::labelled).tokenizer->size() == 6);
}

BOOST_AUTO_TEST_CASE(a_tokenizer_config_that_contradicts_tokenizer_json_is_refused) {
  const nlohmann::json golden =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/data/imported_golden.json"));
  const auto check = [&](const std::string& name, const std::string& config, TextRole role,
                         const std::string& reason) {
    const auto& cases = golden["cases"];
    const auto found =
        std::ranges::find_if(cases, [&](const auto& each) { return each["name"] == name; });
    const TempFolder folder;
    nlohmann::json tokenizer = (*found)["tokenizer"];
    if (role == TextRole::labelled)
      tokenizer["post_processor"] = {
          {"type", "BertProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}};
    put(folder / "tokenizer.json", tokenizer.dump());
    put(folder / "tokenizer_config.json", config);
    put(folder / "config.json",
        role == TextRole::labelled ? R"({"model_type":"bert"})" : R"({"model_type":"gpt2"})");
    const ImportedIds ids =
        ids_of({-1, -1, role == TextRole::continued ? 0 : -1}, (*found)["size"].get<int>());
    if (reason.empty())
      BOOST_TEST(import_tokenizer(folder.path, ids, role).tokenizer->size() == ids.size);
    else
      check_pieces_refused(folder.path, ids, role, reason);
  };
  for (
      const auto& [config, reason] :
      {std::pair(R"({"do_lower_case": true, "tokenize_chinese_chars": true, "strip_accents": null,
                      "added_tokens_decoder": {"4": {"content": "[MASK]"}}})",
                 ""),
       std::pair(
           R"({"do_lower_case": false})",
           "BertTokenizer has do_lower_case false at /normalizer/lowercase, but tokenizer.json has true"),
       std::pair(R"({"strip_accents": true})", "BertTokenizer has strip_accents true at"),
       std::pair(R"({"tokenize_chinese_chars": false})",
                 "has tokenize_chinese_chars false at /normalizer/handle_chinese_chars"),
       std::pair(R"({"added_tokens_decoder": {"4": {"content": "[X]"}}})",
                 "\"[X]\" with the id 4 is not in tokenizer.json"),
       std::pair(R"({"added_tokens_decoder": {"3": {"content": "[MASK]"}}})",
                 "\"[MASK]\" with the id 3 is not"),
       std::pair(R"({"added_tokens_decoder": {"4": {"content": "[MASK]", "lstrip": true}}})",
                 "the added token \"[MASK]\" has other flags"),
       std::pair(R"({"added_tokens_decoder": [3]})", "added_tokens_decoder is not an object"),
       std::pair(R"({"tokenizer_class": "RobertaTokenizerFast"})",
                 "tokenizer_class is RobertaTokenizer; beside tokenizer.json, heed knows"),
       std::pair(R"({"tokenizer_class": "GPT2Tokenizer"})",
                 "GPT2Tokenizer has \"BPE\" at /model/type, but tokenizer.json has \"WordPiece\""),
       std::pair(R"({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": false})", ""),
       std::pair(R"({"added_tokens_decoder": 3)", "tokenizer_config.json")})
    check("bert-uncased", config, TextRole::labelled, reason);
  check("gpt2", R"({"add_prefix_space": false})", TextRole::continued, "");
  check("gpt2", R"({"add_prefix_space": true})", TextRole::continued,
        "GPT2Tokenizer has add_prefix_space true at /pre_tokenizer/add_prefix_space");
  check("prefix", R"({"add_prefix_space": true})", TextRole::continued, "");
  check("prefix", "{}", TextRole::continued,
        "GPT2Tokenizer has false at /pre_tokenizer/add_prefix_space");
  check("qwen2", R"({"tokenizer_class": "PreTrainedTokenizerFast"})", TextRole::continued, "");
  check("llama3", R"({"tokenizer_class": "Qwen2Tokenizer"})", TextRole::continued,
        "Qwen2Tokenizer has");
}

BOOST_AUTO_TEST_CASE(vocab_json_and_merges_are_those_of_gpt2_only) {
  const nlohmann::json golden =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/data/imported_golden.json"));
  const auto& cases = golden["cases"];
  const auto gpt2 =
      std::ranges::find_if(cases, [](const auto& each) { return each["name"] == "gpt2"; });
  const nlohmann::json& model = (*gpt2)["tokenizer"]["model"];
  const TempFolder folder;
  put(folder / "vocab.json", model["vocab"].dump());
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : model["merges"])
    merges += merge.is_string()
                  ? merge.get<std::string>() + "\n"
                  : merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  put(folder / "merges.txt", merges);
  put(folder / "config.json", R"({"model_type": "gpt2"})");
  const ImportedIds ids = ids_of({-1, -1, 0}, (*gpt2)["size"].get<int>());
  const auto read = [&](const std::string& config) {
    put(folder / "tokenizer_config.json", config);
    return import_tokenizer(folder.path, ids, TextRole::continued).tokenizer;
  };
  const auto plain = read("{}"), prefixed = read(R"({"add_prefix_space": true})");
  for (std::size_t i = 0; i < golden["lines"].size(); ++i) {
    const std::string line = golden["lines"][i];
    BOOST_TEST((plain->encode(line) == (*gpt2)["ids"][i].get<Ids>()), "line " << i);
    if (!line.empty() && line[0] > ' ' && line[0] < 127)
      BOOST_TEST((prefixed->encode(line) == plain->encode(" " + line)), "line " << i);
  }
  for (const auto& wrong :
       {std::pair(R"({"tokenizer_class": "RobertaTokenizer"})",
                  "are read as those of GPT2Tokenizer only, not of RobertaTokenizer"),
        std::pair(R"({"add_bos_token": true})", "add_bos_token is true")})
    HEED_CHECK_ERROR(Exit::bad_input, wrong.second, read(wrong.first));
  put(folder / "config.json", R"({"model_type": "qwen2"})");
  HEED_CHECK_ERROR(Exit::bad_input, "only, not of Qwen2Tokenizer", read("{}"));
  BOOST_TEST(read(R"({"tokenizer_class": "GPT2TokenizerFast"})")->size() == ids.size);
  put(folder / "added_tokens.json", R"({"<tool>": 500})");
  HEED_CHECK_ERROR(Exit::bad_input,
                   "the added token \"<tool>\" with the id 500 is not in tokenizer.json",
                   read(R"({"tokenizer_class": "GPT2TokenizerFast"})"));
}

BOOST_AUTO_TEST_CASE(pieces_of_t5_have_its_ids_and_further_tokens) {
  const T5Folder folder;
  const auto tokenizer = folder.read().tokenizer;
  sentencepiece::SentencePieceProcessor library;
  BOOST_REQUIRE(library.LoadFromSerializedProto(folder.model).ok());
  for (const std::string& text : texts) {
    Ids expected;
    std::string decoded;
    BOOST_REQUIRE(library.Encode(text, &expected).ok());
    BOOST_REQUIRE(library.Decode(expected, &decoded).ok());
    BOOST_TEST(tokenizer->encode(text) == expected, boost::test_tools::per_element());
    BOOST_TEST(tokenizer->decode(expected) == decoded);
  }
  BOOST_TEST((tokenizer->special_ids() == SpecialIds{2, 0, 1}));
  BOOST_TEST(tokenizer->first_ordinary() == 3);
  BOOST_TEST(tokenizer->size() == 17);
  BOOST_TEST(tokenizer->special("<extra_id_2>").value() == 12);
  BOOST_TEST(tokenizer->special("<extra_id_0>").value() == 14);
  BOOST_TEST(!tokenizer->text_start());
  const auto loaded =
      load_tokenizer(tokenizer->save(folder.temporary / "saved"), TokenizerKind::sentencepiece);
  BOOST_TEST((loaded->special_ids() == SpecialIds{2, 0, 1}));
  BOOST_TEST(loaded->encode("x ab") == tokenizer->encode("x ab"), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(exported_tokenizer_of_t5_is_read_again) {
  const T5Folder folder;
  const auto json = tokenizer_json(*folder.read().tokenizer, {.end_token = true});
  BOOST_TEST(json["model"]["unk_id"] == 2);
  BOOST_TEST(json["model"]["vocab"].size() == 15u);
  BOOST_TEST(json["added_tokens"].size() == 6u);
  BOOST_TEST(json["post_processor"]["special_tokens"]["</s>"]["ids"][0] == 1);
  const TempFolder second;
  put(second / "tokenizer.json", json.dump());
  const auto again = import_tokenizer(second.path, folder.ids, TextRole::source).tokenizer;
  BOOST_TEST((tokenizer_json(*again, {.end_token = true}) == json));
  BOOST_TEST(again->size() == 17);
  // Beside the model, another tokenizer.json only says which tokens are added.
  nlohmann::json other = json;
  other["pre_tokenizer"]["split"] = true;
  put(second / "tokenizer.json", other.dump());
  check_pieces_refused(second.path, folder.ids, TextRole::source,
                       "other values at /pre_tokenizer/split");
  put(second / "spiece.model", folder.model);
  BOOST_TEST(import_tokenizer(second.path, folder.ids, TextRole::source)
                 .tokenizer->special("<extra_id_2>")
                 .value() == 12);
  other["added_tokens"][5]["id"] = 15;
  put(second / "tokenizer.json", other.dump());
  check_pieces_refused(second.path, folder.ids, TextRole::source, "cannot add the token");
}

BOOST_AUTO_TEST_CASE(pieces_of_llama_begin_texts_with_a_special_piece) {
  const TempFolder folder;
  PieceModel model = unigram({"<unk>", "<s>", "</s>"}, 1, {"a", "b", "ab", "\u2581", "\u2581ab"});
  model.bpe = true;
  model.remove_extra_whitespaces = false;
  put(folder / "tokenizer.model", write_piece_model(model));
  const ImportedIds ids = ids_of({-1, 1, 2}, 8);
  const auto read = [&](const std::string& config) {
    put(folder / "tokenizer_config.json", config);
    return import_tokenizer(folder.path, ids, TextRole::continued).tokenizer;
  };
  const auto tokenizer = read("{}");
  BOOST_TEST(tokenizer->text_start().value() == 1);
  BOOST_TEST(tokenizer->encode("ab ab") == (Ids{7, 7}), boost::test_tools::per_element());
  const auto json = tokenizer_json(*tokenizer, {});
  BOOST_TEST(json["post_processor"]["single"][0]["SpecialToken"]["id"] == "<s>");
  BOOST_TEST(
      !read(R"({"add_bos_token": false, "tokenizer_class": "LlamaTokenizerFast"})")->text_start());
  for (const auto& wrong :
       {std::pair(R"({"add_eos_token": true})", "add_eos_token is true"),
        std::pair(R"({"add_prefix_space": false})", "add_prefix_space is false"),
        std::pair(R"({"tokenizer_class": "AlbertTokenizer"})",
                  "tokenizer_class is \"AlbertTokenizer\""),
        std::pair(R"({"added_tokens_decoder": {"8": {"content": "<x>", "special": false}}})",
                  "cannot add the token \"<x>\" with the id 8")})
    HEED_CHECK_ERROR(Exit::bad_input, wrong.second, read(wrong.first));
  put(folder / "tokenizer_config.json", "{}");
  std::string words = write_piece_model(model);
  words += "\x12\x02\x18\x03";  // model_type: word
  put(folder / "tokenizer.model", words);
  check_pieces_refused(folder.path, ids, TextRole::continued,
                       (folder / "tokenizer.model").string() + ": a sentencepiece model of words");
  put(folder / "tokenizer.model", write_piece_model(model));
  check_pieces_refused(folder.path, ids_of({-1, 3, 2}, 8), TextRole::continued,
                       "the id 3 of config.json is that of no special piece");
  check_pieces_refused(folder.path, ids_of({-1, 1, 2}, 7), TextRole::continued,
                       "8 pieces, but the model's vocabulary has 7");
  check_pieces_refused(folder.path, ids_of({-1, 1, 2}, 1'000'000), TextRole::continued,
                       "8 pieces, but");
}

BOOST_AUTO_TEST_CASE(two_models_of_marian_have_the_ids_of_one_vocabulary) {
  const TempFolder folder;
  const std::vector<std::string> specials{"<unk>", "<s>", "</s>"};
  const std::string source = write_piece_model(unigram(specials, 0.5F)),
                    target = write_piece_model(
                        unigram(specials, 2, {"ab", "\u2581", "c", "b", "a", "\u2581c"}));
  put(folder / "source.spm", source);
  put(folder / "target.spm", target);
  // Without "bb" and "ca" of the source, but with "x", which neither model has.
  const std::vector<std::string> vocabulary{"</s>",   "<unk>", "c", "\u2581c", "\u2581ab", "b",
                                            "\u2581", "ab",    "a", "x",       "<pad>"};
  nlohmann::json map;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) map[vocabulary[id]] = id;
  put(folder / "vocab.json", map.dump());
  const ImportedIds ids = ids_of({-1, 10, 0}, 12);
  const ReadTokenizer read = import_tokenizer(folder.path, ids, TextRole::source);
  BOOST_REQUIRE(read.target);
  bool unknown = false;
  for (const auto& [tokenizer, model] :
       {std::pair(read.tokenizer.get(), source), std::pair(read.target.get(), target)}) {
    for (const std::string& text : texts) {
      Ids expected;
      for (const std::string& piece : pieces_of(model, text)) {
        expected.push_back(map.value(piece, 1));
        unknown |= piece == "bb" || piece == "ca";
      }
      BOOST_TEST(tokenizer->encode(text) == expected, boost::test_tools::per_element());
    }
    BOOST_TEST(tokenizer->decode(Ids{4, 3, 7, 0}) == "ab cab");
    BOOST_TEST((tokenizer->special_ids() == SpecialIds{1, 10, 0}));
    BOOST_TEST(tokenizer->size() == 12);
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
      BOOST_TEST(tokenizer->piece(static_cast<std::int32_t>(id)) == vocabulary[id]);
  }
  BOOST_TEST(unknown);  // the texts contain pieces without an id
  map[">>fra<<"] = 11;
  put(folder / "vocab.json", map.dump());
  check_pieces_refused(folder.path, ids, TextRole::source,
                       ">>fra<< begins lines of a target language");
  map.erase(">>fra<<");
  put(folder / "vocab.json", map.dump());
  PieceModel pairs = unigram(specials, 1);
  pairs.bpe = true;
  put(folder / "target.spm", write_piece_model(pairs));
  check_pieces_refused(folder.path, ids, TextRole::source, "target.spm: a BPE model");
}

BOOST_AUTO_TEST_SUITE_END()
