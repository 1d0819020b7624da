#include "data/tokenizers/imported.h"

#include <nlohmann/json.hpp>

#include "data/batches/dataset.h"
#include "data/tokenizers/regex.h"
#include "data/tokenizers/unicode.h"
#include "tests/data/support.h"

using namespace heed;
using heed::testing::TempDir;

BOOST_AUTO_TEST_SUITE(imported_tokenizers)

namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// Ids of the library tokenizers (tests/data/imported_reference.py).
const Json& golden() {
  static const Json all =
      Json::parse(std::ifstream(HEED_SOURCE_DIR "/tests/data/imported_golden.json"));
  return all;
}

ImportedIds ids_of(const Json& tokens) {
  ImportedIds ids;
  ids.size = tokens["size"].get<std::int64_t>();
  return ids;
}

const Json& named(const std::string& name) {
  for (const Json& tokens : golden()["cases"])
    if (tokens["name"] == name) return tokens;
  throw std::out_of_range(name);
}

std::unique_ptr<Tokenizer> made(const Json& tokenizer, const ImportedIds& ids) {
  return make_imported(tokenizer.dump(), ids, "t.json");
}

/// Whether a changed tokenizer.json is refused with a message that contains `reason`.
void check_refused(const Json& tokenizer, const ImportedIds& ids, const std::string& reason) {
  BOOST_CHECK_EXCEPTION(made(tokenizer, ids), Error, [&](const Error& e) {
    BOOST_TEST(std::string(e.what()).find(reason) != std::string::npos, e.what());
    return e.code == Exit::bad_input;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(ids_and_texts_equal_those_of_the_library) {
  const auto lines = golden()["lines"].get<std::vector<std::string>>();
  for (const Json& tokens : golden()["cases"]) {
    const auto tokenizer = made(tokens["tokenizer"], ids_of(tokens));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      BOOST_TEST_CONTEXT(tokens["name"] << ", line " << i) {
        const Ids expected = tokens["ids"][i].get<Ids>(), ids = tokenizer->encode(lines[i]);
        BOOST_TEST(ids == expected, boost::test_tools::per_element());
        BOOST_TEST(tokenizer->decode(expected) == tokens["texts"][i].get<std::string>());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_saved_tokenizer_is_the_same_and_keeps_the_file_byte_for_byte) {
  const TempDir folder;
  const Json& tokens = named("gpt2");
  ImportedIds ids = ids_of(tokens);
  ids.special = {-1, 7, 0};
  ids.starts_text = true;
  ids.size += 5;  // the model has more ids than the tokenizer
  const std::string json = tokens["tokenizer"].dump(3) + "\n\n";
  const auto tokenizer = make_imported(json, ids, "t.json");
  const auto path = tokenizer->save(folder / "tokenizer");
  BOOST_TEST(path.filename() == "tokenizer.imported");
  const auto loaded = load_tokenizer(path, TokenizerKind::imported);
  BOOST_TEST(json_of_imported(loaded->content()) == json);
  BOOST_TEST((loaded->special_ids() == ids.special));
  BOOST_TEST(loaded->text_start().value() == 7);
  BOOST_TEST(loaded->size() == ids.size);
  BOOST_TEST(loaded->encode("naïve") == tokenizer->encode("naïve"),
             boost::test_tools::per_element());
  BOOST_TEST(
      loaded->decode(Ids{0, loaded->encode("a")[0], static_cast<std::int32_t>(ids.size - 1)}) ==
      "a");  // neither special pieces nor ids without a piece have a text
}

BOOST_AUTO_TEST_CASE(a_byte_that_is_no_character_keeps_its_id) {
  const Json& tokens = named("gpt2");
  const auto tokenizer = made(tokens["tokenizer"], ids_of(tokens));
  const std::string text =
      "a\xFF\xC3"
      "b";
  const Ids ids = tokenizer->encode(text);
  BOOST_TEST(ids.size() == 4);
  BOOST_TEST(tokenizer->decode(ids) == text);
}

BOOST_AUTO_TEST_CASE(a_text_encoded_in_parts_has_the_ids_of_the_whole_text) {
  const Json& tokens = named("llama3");
  const auto tokenizer = made(tokens["tokenizer"], ids_of(tokens));
  std::string text;
  for (const std::string line : golden()["lines"]) text += line + "\n";
  text += "\n\n  a\n b\n\nc \nd\n\n";
  const Ids whole = tokenizer->encode(text), parts = tokenize_text(text, *tokenizer).stream;
  BOOST_TEST(parts == whole, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(values_that_heed_does_not_honour_are_refused_by_name) {
  const Json &gpt2 = named("gpt2"), &bert = named("bert-cased");
  const auto changed = [](const Json& tokens, const char* pointer, const Json& value,
                          const std::string& reason) {
    Json tokenizer = tokens["tokenizer"];
    tokenizer[Json::json_pointer(pointer)] = value;
    check_refused(tokenizer, ids_of(tokens), reason);
  };
  changed(gpt2, "/model/dropout", 0.1, "model: \"dropout\" is 0.1");
  changed(gpt2, "/model/unheard_of", 1, "does not know the key \"unheard_of\"");
  changed(gpt2, "/model/type", "Unigram", "the type \"Unigram\"");
  changed(gpt2, "/model/merges/3", {"a", "zzz"}, "\"merges\": number 4");
  changed(gpt2, "/model/vocab/a", 3, "two pieces have the id 3");
  changed(gpt2, "/model/vocab/a", -3, "the id of \"a\"");
  changed(gpt2, "/normalizer", {{"type", "NFKD"}},
          "normalizer: heed does not have the type \"NFKD\"");
  changed(gpt2, "/pre_tokenizer", nullptr, "the pre_tokenizer ByteLevel");
  changed(gpt2, "/decoder", {{"type", "Fuse"}}, "decoder: heed does not have the type \"Fuse\"");
  changed(gpt2, "/added_tokens/0/id", 10'000, "has the id 10000");
  changed(gpt2, "/version", "2.0", "\"version\" is \"2.0\"");
  changed(bert, "/model/unk_token", nullptr, "\"unk_token\" is missing");
  changed(bert, "/normalizer/lowercase", "yes", "\"lowercase\" must be true or false");
  Json split = named("llama3")["tokenizer"];
  split["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext";
  check_refused(split, ids_of(named("llama3")), "\"behavior\" is \"MergedWithNext\"");
  split["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Isolated";
  split["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a";
  check_refused(split, ids_of(named("llama3")), "pattern \"(a\": missing closing parenthesis");
  ImportedIds ids = ids_of(gpt2);
  ids.special.eos = 330;
  check_refused(gpt2["tokenizer"], ids, "special id 330");
  ids = ids_of(gpt2);
  ids.size = 100;
  check_refused(gpt2["tokenizer"], ids, "330 pieces, but the model's vocabulary has 100");
  ids.size = std::int64_t{1} << 40;
  check_refused(gpt2["tokenizer"], ids, "at most 2000000 are allowed");
}

namespace {

/// A byte-pair tokenizer with the pieces a, b, c, ab, abc, ? and " ab"; only ab results from a merge.
Json byte_pairs() {
  return {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"pre_tokenizer",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"abc", 4}, {"?", 5}, {"\u0120ab", 8}}},
        {"merges", Json::array({"a b"})}}}};
}

/// A WordPiece tokenizer with these pieces and this normalizer.
Json word_pieces(const std::vector<std::string>& pieces, const Json& normalizer) {
  Json vocabulary;
  for (const std::string& piece : pieces) vocabulary[piece] = vocabulary.size();
  return {{"version", "1.0"},
          {"normalizer", normalizer},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"vocab", vocabulary}}}};
}

void check_ids(const Json& tokenizer, const std::string& text, const Ids& expected) {
  ImportedIds ids;
  ids.size = 20;
  BOOST_TEST_CONTEXT(tokenizer.dump() << ": " << text)
  BOOST_TEST(made(tokenizer, ids)->encode(text) == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(ignore_merges_unk_token_and_fuse_unk_determine_the_ids_of_byte_pairs) {
  Json tokenizer = byte_pairs();
  check_ids(tokenizer, "abc", {3, 2});
  tokenizer["model"]["ignore_merges"] = true;  // a word that is a piece needs no merges
  check_ids(tokenizer, "abc", {4});
  check_ids(tokenizer, "abcc ab", {3, 2, 2, 8});
  tokenizer = byte_pairs();
  check_ids(tokenizer, "axxb", {3});  // bytes without an id are omitted
  tokenizer["model"]["unk_token"] = "?";
  check_ids(tokenizer, "xaxxbx", {5, 0, 5, 5, 1, 5});
  tokenizer["model"]["fuse_unk"] = true;
  check_ids(tokenizer, "xaxxbx", {5, 0, 5, 1, 5});
}

BOOST_AUTO_TEST_CASE(parts_of_a_text_between_matches_are_words) {
  Json tokenizer = byte_pairs();
  tokenizer["model"]["unk_token"] = "?";
  Json byte_level = tokenizer["pre_tokenizer"], split{{"type", "Split"},
                                                      {"pattern", {{"String", "."}}},
                                                      {"behavior", "Isolated"},
                                                      {"invert", false}};
  byte_level["use_regex"] = false;
  const auto cut = [&](const std::string& behavior) {
    split["behavior"] = behavior;
    tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
    return tokenizer;
  };
  check_ids(cut("Isolated"), "a.b.ab", {0, 5, 1, 5, 3});
  check_ids(cut("Removed"), "a.b.ab", {0, 1, 3});
  split["pattern"] = {{"Regex", "[.b]"}};
  check_ids(cut("Removed"), "a.b.ac", {0, 0, 2});
}

BOOST_AUTO_TEST_CASE(longest_added_token_at_a_position_is_matched) {
  for (const bool long_first : {false, true}) {
    Json tokenizer = byte_pairs(),
         added{{{"id", 6}, {"content", "ca"}}, {{"id", 7}, {"content", "cab"}}};
    if (long_first) std::swap(added[0], added[1]);
    tokenizer["added_tokens"] = added;
    check_ids(tokenizer, "acabbcac", {0, 7, 1, 6, 2});
  }
}

BOOST_AUTO_TEST_CASE(each_step_of_a_normalizer_can_be_left_out) {
  const std::vector<std::string> pieces{"[UNK]", "你", "好", "##好",   "a",
                                        "##b",   "E",  "e",  "e\u0301"};
  const auto check = [&](const char* key, const std::string& text, const Ids& with,
                         const Ids& without) {
    Json bert{{"type", "BertNormalizer"}, {"lowercase", false}};
    for (const bool does : {true, false}) {
      bert[key] = does;
      check_ids(word_pieces(pieces, bert), text, does ? with : without);
    }
  };
  check("handle_chinese_chars", "你好 a", {1, 2, 4}, {1, 3, 4});
  check("clean_text", "a\u0007b a", {4, 5, 4}, {0, 4});
  check("strip_accents", "É a", {6, 4}, {0, 4});
  check("lowercase", "E", {7}, {6});
  const Json steps{{{"type", "NFD"}}, {{"type", "Lowercase"}}};
  check_ids(word_pieces(pieces, {{"type", "Sequence"}, {"normalizers", steps}}), "É E", {8, 7});
  check_ids(word_pieces(pieces, steps[1]), "É E", {0, 7});
}

BOOST_AUTO_TEST_CASE(a_pattern_that_takes_too_many_steps_ends_with_an_error) {
  const Regex slow("(a|aa)+[bd]", "t.json");
  const std::string text = std::string(60, 'a') + "c";
  BOOST_CHECK_EXCEPTION(slow.each_part(text, [](std::string_view, bool) {}), Error,
                        [](const Error& e) { return e.code == Exit::bad_input; });
}

BOOST_AUTO_TEST_CASE(normal_forms_are_those_of_the_unicode_standard) {
  // Annex 15, figures 3 to 6, and a syllable of Hangul.
  BOOST_TEST(nfd("\u212B\u1E9B\u0323") == "A\u030A\u017F\u0323\u0307");
  BOOST_TEST(nfc("\u212B\u1E9B\u0323") == "\u00C5\u1E9B\u0323");
  BOOST_TEST(nfc("d\u0307\u0323") == "\u1E0D\u0307");
  BOOST_TEST(nfd("\uAC01") == "\u1100\u1161\u11A8");
  BOOST_TEST(nfc("\u1100\u1161\u11A8") == "\uAC01");
  BOOST_TEST(nfc("\u0958") == "\u0915\u093C");  // excluded from composition
  BOOST_TEST(nfc("\u0301a\u0301") == "\u0301\u00E1");
}

BOOST_AUTO_TEST_SUITE_END()
