#include <cmath>
#include <set>
#include <thread>

#include "data/tokenizers/tokenizer.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(sentencepiece)
using Ids = std::vector<std::int32_t>;

namespace {

std::unique_ptr<Tokenizer> learn(const std::vector<std::string>& lines, std::int64_t size) {
  return train_tokenizer({.kind = TokenizerKind::sentencepiece, .vocab_size = size}, lines, 1);
}

const Tokenizer& example() {
  static const auto tokenizer = learn(sentences(400, 1), 64);
  return *tokenizer;
}

}  // namespace

BOOST_AUTO_TEST_CASE(long_line_has_same_ids_as_its_separately_encoded_words) {
  std::string line;
  for (const auto& sentence : sentences(2000, 3)) line += (line.empty() ? "" : " ") + sentence;
  BOOST_TEST(line.size() > 20'000u);
  Ids words;  // encoded separately: no piece spans a space
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const Ids word = example().encode(line.substr(at, end - at));
    words.insert(words.end(), word.begin(), word.end());
    at = end + 1;
  }
  BOOST_TEST((example().encode(line) == words));
  const std::string unknown(900'000, '\x7E');  // encoding it in one part would take an hour
  BOOST_TEST(!example().encode(unknown).empty());
  // Such a long word is split between two characters.
  for (const std::string start : {"", "a", "ab", " "}) {
    std::string word = start;
    while (word.size() < 20'000) word += "日本";
    std::string back = example().decode(example().encode(word));
    back.erase(std::remove(back.begin(), back.end(), ' '), back.end());
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    BOOST_TEST((back == word));  // equal apart from spaces between the parts
  }
  // A line of continuation bytes is split after single bytes until the rest is short enough. Its
  // ids are unspecified.
  BOOST_TEST(!example().encode(std::string(8'200, '\x80')).empty());
}

BOOST_AUTO_TEST_CASE(sampled_segmentations_decode_to_same_text) {
  for (const PieceAlgorithm algorithm : {PieceAlgorithm::unigram, PieceAlgorithm::bpe}) {
    const bool merges = algorithm == PieceAlgorithm::bpe;
    const auto tokenizer = train_tokenizer(
        {.kind = TokenizerKind::sentencepiece, .algorithm = algorithm, .vocab_size = 150},
        sentences(400, 1), 1);
    const auto draw = [&](const std::string& line, double alpha, std::uint64_t index) {
      Random random({.seed = 1, .stream = Stream::segmentation, .index = index});
      return tokenizer->sample(line, {.alpha = alpha, .nbest = 16}, random);
    };
    std::vector<std::string> lines = sentences(100, 5);
    lines.insert(lines.end(), {"", " ", "日本 is unknown 日本", "a\tb"});
    for (const std::string& line : lines) {
      const Ids usual = tokenizer->encode(line);
      // Without dropped merges, or with a large alpha, the deterministic segmentation is drawn.
      if (merges || line == lines[0]) BOOST_TEST((draw(line, merges ? 0 : 1e6, 1) == usual));
      std::set<Ids> drawn;
      for (std::uint64_t i = 0; i < 20; ++i) {
        const double alpha = merges ? 0.2 : 0.02;
        const Ids ids = draw(line, alpha, i);
        BOOST_TEST((ids == draw(line, alpha, i)));
        BOOST_TEST(tokenizer->decode(ids) == tokenizer->decode(usual));
        drawn.insert(ids);
      }
      if (usual.size() > 4) BOOST_TEST(drawn.size() > 3u, line << ": " << drawn.size());
    }
    if (!merges) continue;
    for (const std::int32_t id : draw(lines[0], 1, 1))  // all merges dropped: characters
      BOOST_TEST((tokenizer->piece(id).size() == 1 || tokenizer->piece(id) == "▁"));
  }
}

// The unigram model draws the two most probable segmentations in the ratio p1^alpha : p2^alpha.
BOOST_AUTO_TEST_CASE(segmentations_are_drawn_in_proportion_to_power_of_probability) {
  const auto tokenizer = learn(sentences(400, 1), 150);
  const std::string line = "gardens";
  const auto share = [&](double alpha) {
    int first = 0;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      Random random({.seed = 2, .stream = Stream::segmentation, .index = i});
      first +=
          tokenizer->sample(line, {.alpha = alpha, .nbest = 2}, random) == tokenizer->encode(line);
    }
    return first / 4000.0;
  };
  BOOST_CHECK_CLOSE(share(0), 0.5, 6);
  const double once = std::log(share(0.1) / (1 - share(0.1))), twice = share(0.2);
  BOOST_CHECK_CLOSE(std::log(twice / (1 - twice)), 2 * once, 20);
}

BOOST_AUTO_TEST_CASE(learning_uses_long_lines_and_skips_long_words) {
  Random random({.seed = 1, .stream = Stream::check, .index = 0, .part = 0});
  std::string noise, words;
  while (noise.size() < 200'000) noise += static_cast<char>('a' + random.below(26));
  for (const auto& line : sentences(5000, 3)) words += line + ' ';
  std::vector<std::string> lines = sentences(400, 1);
  lines.push_back(noise);                      // one word: skipped
  lines.push_back(std::string(300'000, 'a'));  // one word: skipped
  lines.push_back(" " + noise + " ");
  const auto without = learn(sentences(400, 1), 64), with = learn(lines, 64);
  for (const auto& line : sentences(20, 2)) {
    BOOST_TEST(with->encode(line) == without->encode(line), boost::test_tools::per_element());
  }
  BOOST_TEST(words.size() > 100'000u);
  const auto of_one_line = learn({words}, 64);  // split at its spaces
  BOOST_TEST(of_one_line->decode(of_one_line->encode(sentences(1, 3)[0])) == sentences(1, 3)[0]);
  const auto after_noise = learn({noise + " " + words}, 64);  // only the long word is skipped
  BOOST_TEST(after_noise->decode(after_noise->encode(sentences(1, 3)[0])) == sentences(1, 3)[0]);
  expect_error(Exit::bad_input, {"4192 bytes"}, [&] { learn({noise}, 64); });
}

BOOST_AUTO_TEST_CASE(byte_pair_encoding_merges_frequent_pairs) {
  // "ab" occurs in every word, so it is merged first, then "ab" and "c".
  const std::vector<std::string> lines(50, "abc abd abc");
  const auto t = train_tokenizer(
      {.kind = TokenizerKind::sentencepiece, .algorithm = PieceAlgorithm::bpe, .vocab_size = 12},
      lines, 1);
  BOOST_TEST(t->encode("abc").size() == 1u);
  BOOST_TEST(t->encode("ab").size() <= 2u);
  for (const auto& line : {"abc abd", "ddd", "cab"}) BOOST_TEST(t->decode(t->encode(line)) == line);
  const auto long_pieces = train_tokenizer(
      {.kind = TokenizerKind::sentencepiece, .algorithm = PieceAlgorithm::bpe, .vocab_size = 64},
      sentences(400, 1), 1);
  std::size_t by_merging = 0, by_model = 0;
  for (const auto& line : sentences(50, 2)) {
    BOOST_TEST(long_pieces->decode(long_pieces->encode(line)) == line);
    by_merging += long_pieces->encode(line).size();
    by_model += example().encode(line).size();
  }
  BOOST_TEST(by_merging != by_model);
}

BOOST_AUTO_TEST_CASE(decoding_restores_encoded_text) {
  const auto& t = example();
  BOOST_TEST(t.size() == 64);
  BOOST_TEST(t.piece(0) == "<unk>");
  BOOST_TEST(t.piece(1) == "<s>");
  BOOST_TEST(t.piece(2) == "</s>");
  for (const auto& line : sentences(50, 2)) {
    const auto ids = t.encode(line);
    BOOST_TEST(t.decode(ids) == line);
    for (const auto id : ids) BOOST_TEST((id > 2 && id < t.size()));
    Ids framed{Tokenizer::bos};
    framed.insert(framed.end(), ids.begin(), ids.end());
    framed.push_back(Tokenizer::eos);
    BOOST_TEST(t.decode(framed) == line);
  }
  BOOST_TEST(t.encode("").empty());
  BOOST_TEST(t.decode(Ids{}) == "");
}

BOOST_AUTO_TEST_CASE(unseen_character_is_encoded_as_unk) {
  const auto ids = example().encode("house ☃");
  BOOST_TEST(std::count(ids.begin(), ids.end(), Tokenizer::unk) == 1);
  BOOST_TEST(example().decode(ids).find("house") == 0u);
  for (const auto id : example().encode("<s> house </s>")) {
    BOOST_TEST(id != Tokenizer::bos);
    BOOST_TEST(id != Tokenizer::eos);
  }
  BOOST_CHECK_NO_THROW(example().encode("\xFF\xC3("));
}

BOOST_AUTO_TEST_CASE(unseen_character_is_encoded_as_its_bytes) {
  for (const PieceAlgorithm algorithm : {PieceAlgorithm::unigram, PieceAlgorithm::bpe}) {
    TokenizerOptions options;
    options.algorithm = algorithm;
    options.vocab_size = 300;
    options.byte_fallback = true;
    const auto tokenizer = train_tokenizer(options, std::vector<std::string>(20, "ab ba aab"), 1);
    std::vector<std::string> pieces;
    for (const std::int32_t id : tokenizer->encode("é")) pieces.push_back(tokenizer->piece(id));
    const std::vector<std::string> bytes{"<0xC3>", "<0xA9>"};  // U+00E9 in UTF-8
    BOOST_REQUIRE(pieces.size() >= 2);
    pieces.erase(pieces.begin(), pieces.end() - 2);  // a space may precede the text
    BOOST_TEST(pieces == bytes, boost::test_tools::per_element());
    BOOST_TEST(tokenizer->decode(tokenizer->encode("ab 🙂 é ba")) == "ab 🙂 é ba");
  }
}

BOOST_AUTO_TEST_CASE(learning_from_same_lines_yields_same_file) {
  const TempDir dir;
  for (const char* stem : {"a", "b"}) learn(sentences(400, 1), 64)->save(dir / stem);
  BOOST_TEST(slurp(dir / "a.model") == slurp(dir / "b.model"));
  BOOST_TEST(!slurp(dir / "a.model").empty());
}

BOOST_AUTO_TEST_CASE(loaded_model_equals_saved_model) {
  const TempDir dir;
  const auto file = example().save(dir / "stem");
  BOOST_TEST(file.string() == (dir / "stem.model").string());
  const auto back = load_tokenizer(file, TokenizerKind::sentencepiece);
  BOOST_TEST(back->size() == example().size());
  for (const auto& line : sentences(20, 3)) {
    BOOST_TEST(back->encode(line) == example().encode(line), boost::test_tools::per_element());
  }
  back->save(dir / "again");
  BOOST_TEST(slurp(dir / "again.model") == slurp(file));
}

BOOST_AUTO_TEST_CASE(small_corpus_yields_small_vocabulary_or_is_refused) {
  BOOST_TEST(learn({"a b c", "b c d"}, 8000)->size() < 20);  // fewer pieces than requested
  BOOST_TEST(learn({"x"}, 8000)->size() >= 4);
  expect_error(Exit::usage, {"tokenizer.vocab_size", "10", "too small"},
               [] { learn(sentences(100, 1), 10); });
  expect_error(Exit::usage, {"tokenizer.vocab_size", "3 is too small", "need 6"},
               [] { learn({"ab"}, 3); });
  expect_error(Exit::failed, {"sentencepiece: ", "insert_id"}, [] { learn({"ab"}, 2); });
  expect_error(Exit::bad_input, {"no text"}, [] { learn({}, 100); });
  expect_error(Exit::bad_input, {"no text"}, [] { learn({"", "  "}, 100); });
  // These lines are empty after normalisation; the library would abort the process.
  const std::vector<std::string> nothing{"\x01",   "\u2581", "\u200B",
                                         "\u00A0", "\u3000", "<s> <unk>"};
  for (const std::string& line : nothing)
    expect_error(Exit::bad_input, {"no text"}, [&] { learn({line}, 100); });
  expect_error(Exit::bad_input, {"no text"}, [&] { learn(nothing, 100); });
  expect_error(Exit::bad_input, {"no text"}, [&] { learn({"<s>\n", "\n", " </s>"}, 100); });
  expect_error(Exit::bad_input, {"no text"}, [] { learn({"\u2585 and more"}, 100); });
  BOOST_TEST(learn({"\x01", "a"}, 100)->size() >= 4);
}

BOOST_AUTO_TEST_CASE(continuous_text_of_known_characters_is_preserved_byte_for_byte) {
  auto lines = sentences(200, 4);
  for (auto& line : lines) line += "\n";
  lines.push_back("\n");
  const auto t = learn(lines, 120);
  const std::string text =
      "the  house\n\n river ½ and\n \n singing";  // two spaces, blank lines, no NFKC
  const std::string known = "the  house\n\n river and\n \n singing";
  BOOST_TEST(t->decode(t->encode(known)) == known);
  const auto whole = t->encode(text);
  Ids by_line;
  for (const char* line : {"the  house\n", "\n", " river ½ and\n", " \n", " singing"}) {
    for (const auto id : t->encode(line)) by_line.push_back(id);
  }
  BOOST_TEST(by_line == whole, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(continuous_text_without_newline_is_preserved) {
  const Split text{.text = "the ½ house  and the houses  and the ½ house"};
  const auto t = make_tokenizers({.vocab_size = 40}, text, 1).target;
  BOOST_TEST(t->decode(t->encode(text.text)) == text.text);
}

BOOST_AUTO_TEST_CASE(broken_model_is_refused) {
  const TempDir dir;
  const std::string model = slurp(example().save(dir / "whole"));
  const auto refused = [&](const std::string& content) {
    const auto file = dir.write("broken.model", content);
    expect_error(Exit::bad_input, {file},
                 [&] { load_tokenizer(file, TokenizerKind::sentencepiece); });
  };
  refused("");
  refused("this is no model at all\n");
  refused(std::string(1000, '\xFF'));
  refused(std::string("\0\0\0\0", 4));
  // The pieces come first: a model truncated among them, within a field or after one, is
  // incomplete.
  for (std::size_t keep = 1; keep < model.size() / 20; keep += 7) refused(model.substr(0, keep));
  refused(model.substr(0, model.size() - 1));
  refused(model + "x");
  // The bytes of a piece in the file: its text, a tag of one byte, its score.
  const std::string text = example().piece(40);
  const std::size_t at = model.find(text + '\x15');
  BOOST_REQUIRE(at != std::string::npos);
  std::string score = model, broken_text = model;
  score.replace(at + text.size() + 1, 4, std::string("\x00\x00\xC0\x7F", 4));  // NaN
  refused(score);
  broken_text.replace(at, text.size(), text.size(), '\xFF');
  refused(broken_text);
  expect_error(Exit::bad_input, {(dir / "none.model").string(), "no such file"},
               [&] { load_tokenizer(dir / "none.model", TokenizerKind::sentencepiece); });
}

BOOST_AUTO_TEST_CASE(id_out_of_range_is_refused) {
  for (const std::int32_t id : {-1, 64, 1 << 30}) {
    expect_error(Exit::failed, {std::to_string(id), "64 pieces"}, [&] {
      example().decode(Ids{3, id});
    });
    expect_error(Exit::failed, {std::to_string(id)}, [&] { example().piece(id); });
  }
}

BOOST_AUTO_TEST_CASE(encoding_in_concurrent_threads_equals_encoding_in_one_thread) {
  const auto lines = sentences(200, 6);
  std::vector<Ids> expected;
  for (const auto& line : lines) expected.push_back(example().encode(line));
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < wrong.size(); ++k) {
      threads.emplace_back([&, k] {
        for (std::size_t i = 0; i < lines.size(); ++i) {
          const auto ids = example().encode(lines[i]);
          wrong[k] += ids != expected[i] || example().decode(ids) != lines[i];
        }
      });
    }
  }
  for (const int w : wrong) BOOST_TEST(w == 0);
}

BOOST_AUTO_TEST_SUITE_END()
