// The tokenizers with a list of pieces: characters, bytes, words.
#include <sys/stat.h>

#include <thread>

#include "autograd/io/lines.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/data/support.h"
#include "tests/full_disk.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(vocabulary)
using Lines = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

namespace {

std::unique_ptr<Tokenizer> learn(TokenizerKind kind, const Lines& lines, std::int64_t size = 8000) {
  return train_tokenizer({.kind = kind, .vocab_size = size}, lines, 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(characters_are_learned_in_code_point_order) {
  const auto t = learn(TokenizerKind::characters, {"bäd a", "日a\n"});
  BOOST_TEST(t->size() == 3 + 7);  // \n, space, a, b, d, ä, 日: by code point
  BOOST_TEST(t->piece(3) == "\n");
  BOOST_TEST(t->piece(9) == "日");
  BOOST_TEST(t->encode("abä") == (Ids{5, 6, 8}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("aèb") == (Ids{5, Tokenizer::unk, 6}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("a\xFF") == (Ids{5, Tokenizer::unk}), boost::test_tools::per_element());
  BOOST_TEST(t->encode("").empty());
  BOOST_TEST(t->decode(Ids{1, 6, 8, 7, 0, 2}) == "bäd\uFFFD");
  BOOST_TEST(t->decode(t->encode("dab 日\n")) == "dab 日\n");
  BOOST_TEST(learn(TokenizerKind::characters, {"a\xFF"
                                               "b"})
                 ->size() == 3 + 2);
}

BOOST_AUTO_TEST_CASE(byte_vocabulary_restores_any_text) {
  const auto t = learn(TokenizerKind::bytes, {});
  BOOST_TEST(t->size() == 259);
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  const Ids ids = t->encode(all);
  for (int i = 0; i < 256; ++i) BOOST_TEST(ids[static_cast<std::size_t>(i)] == 3 + i);
  BOOST_TEST(t->decode(ids) == all);
  BOOST_TEST(t->decode(t->encode("日本 </s>")) == "日本 </s>");
}

BOOST_AUTO_TEST_CASE(words_are_learned_in_order_of_frequency) {
  const auto t = learn(TokenizerKind::words, {"b a  c", "\ta b\r", "a"});
  BOOST_TEST(t->size() == 6);
  BOOST_TEST(t->piece(3) == "a");  // the most frequent word
  BOOST_TEST(t->piece(4) == "b");
  BOOST_TEST(t->encode(" c \v\fa\tx ") == (Ids{5, 3, Tokenizer::unk}),
             boost::test_tools::per_element());
  BOOST_TEST(t->decode(Ids{1, 5, 3, 0, 2}) == "c a <unk>");
  const auto small = learn(TokenizerKind::words, {"b a c", "a b", "a"}, 5);
  BOOST_TEST(small->size() == 5);  // the limit includes special pieces
  BOOST_TEST(small->encode("c") == (Ids{Tokenizer::unk}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(words_of_continuous_text_include_newlines) {
  const auto t = learn(TokenizerKind::words, {"to be\n", "\n", "or not\n"});
  const std::string text = "or be\n\nto not\n";
  BOOST_TEST(t->decode(t->encode(text)) == text);
}

BOOST_AUTO_TEST_CASE(text_is_never_encoded_as_special_piece) {
  for (const auto kind : {TokenizerKind::characters, TokenizerKind::bytes, TokenizerKind::words}) {
    const auto t = learn(kind, {"<s> </s> <unk> x"});
    for (const auto id : t->encode("<s> x </s> <unk>")) BOOST_TEST(id > 2);
    BOOST_TEST(t->decode(t->encode("<s> x </s> <unk>")) == "<s> x </s> <unk>");
  }
}

BOOST_AUTO_TEST_CASE(loaded_vocabulary_equals_saved_vocabulary) {
  const TempDir dir;
  const std::string awkward =
      " \\ \\n \t \r\n \x01\x7F <s> </s> <unk> grün 日本 \u00A0\u2028 \\x41";
  for (const auto kind : {TokenizerKind::characters, TokenizerKind::bytes, TokenizerKind::words}) {
    const auto t = learn(kind, {awkward, "plain line"});
    const auto file = t->save(dir / "stem");
    BOOST_TEST(file.string() == (dir / "stem.vocab").string());
    const auto back = load_tokenizer(file, kind);
    BOOST_TEST(back->size() == t->size());
    for (std::int32_t id = 0; id < t->size(); ++id) BOOST_TEST(back->piece(id) == t->piece(id));
    BOOST_TEST(back->encode(awkward) == t->encode(awkward), boost::test_tools::per_element());
    // The id of a piece is the number of its line, from 0.
    const auto lines = read_lines(file.string());
    BOOST_TEST(static_cast<std::int64_t>(lines.size()) == t->size());
    BOOST_TEST(lines[0] == "<unk>");
    BOOST_TEST(lines[1] == "<s>");
    BOOST_TEST(lines[2] == "</s>");
    const auto content = slurp(file);
    back->save(dir / "again");
    BOOST_TEST(slurp(dir / "again.vocab") == content);
  }
}

BOOST_AUTO_TEST_CASE(vocabulary_file_has_documented_format) {
  const TempDir dir;
  const auto t = learn(TokenizerKind::characters, {"a \\\n\t\x01é"});
  BOOST_TEST(slurp(t->save(dir / "v")) == "<unk>\n<s>\n</s>\n\\x01\n\\t\n\\n\n\\s\n\\\\\na\né\n");
}

BOOST_AUTO_TEST_CASE(broken_vocabulary_file_is_refused) {
  const TempDir dir;
  const auto load = [&](std::string_view content, TokenizerKind kind = TokenizerKind::characters) {
    const auto file = dir.write("x.vocab", content);
    return load_tokenizer(file, kind);
  };
  const auto x = (dir / "x.vocab").string();
  expect_error(Exit::bad_input, {x + ":1:", "<unk>"}, [&] { load(""); });
  expect_error(Exit::bad_input, {x + ":2:", "<s>"}, [&] { load("<unk>\na\nb\nc\n"); });
  expect_error(Exit::bad_input, {x, "without pieces"}, [&] { load("<unk>\n<s>\n</s>\n"); });
  expect_error(Exit::bad_input, {x + ":5:", "duplicate piece"},
               [&] { load("<unk>\n<s>\n</s>\na\na\n"); });
  expect_error(Exit::bad_input, {x + ":4:", "requires a single character"},
               [&] { load("<unk>\n<s>\n</s>\nab\n"); });
  for (const char* bad : {"\\", "\\q", "\\x4", "\\xZZ", ""}) {
    expect_error(Exit::bad_input, {x + ":4:", "not a piece"},
                 [&] { load("<unk>\n<s>\n</s>\n" + std::string(bad) + "\n"); });
  }
  expect_error(Exit::bad_input, {x + ":4:"},
               [&] { load("<unk>\n<s>\n</s>\na\\sb\n", TokenizerKind::words); });
  expect_error(Exit::bad_input, {x + ":4:"},
               [&] { load("<unk>\n<s>\n</s>\n\\xFF\n", TokenizerKind::words); });
  expect_error(Exit::bad_input, {x, "256"},
               [&] { load("<unk>\n<s>\n</s>\na\n", TokenizerKind::bytes); });
  expect_error(Exit::bad_input, {(dir / "none.vocab").string(), "no such file"},
               [&] { load_tokenizer(dir / "none.vocab", TokenizerKind::words); });
  // Opening a pipe without a writer would block forever.
  BOOST_REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  for (const std::filesystem::path& file : {dir / "fifo", std::filesystem::path("/dev/zero")}) {
    expect_error(Exit::bad_input, {file.string() + ": not a regular file"},
                 [&] { load_tokenizer(file, TokenizerKind::words); });
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused_and_write_errors_are_reported) {
  const auto t = learn(TokenizerKind::words, {"a b"});
  for (const std::int32_t id : {-1, 5, 1000000}) {
    expect_error(Exit::failed, {std::to_string(id), "5 pieces"}, [&] { t->decode(Ids{3, id}); });
    expect_error(Exit::failed, {std::to_string(id)}, [&] { t->piece(id); });
  }
  expect_error(Exit::usage, {"tokenizer.vocab_size"},
               [&] { learn(TokenizerKind::words, {"a"}, 3); });
  expect_error(Exit::bad_input, {"no text"}, [&] { learn(TokenizerKind::words, {"", " "}); });
  expect_error(Exit::bad_input, {"no text"}, [&] { learn(TokenizerKind::characters, {}); });
  expect_error(Exit::io, {"cannot create /no-such-folder/x.vocab"},
               [&] { t->save("/no-such-folder/x"); });
  Lines long_words;  // their file would have 70 MB, which load_tokenizer would refuse
  for (char c = 0; c < 70; ++c)
    long_words.push_back(std::string(1'000'000, static_cast<char>('0' + c)));
  expect_error(Exit::usage, {"MiB, but the maximum is 64 MiB", "tokenizer.vocab_size"},
               [&] { learn(TokenizerKind::words, long_words); });
  const TempDir dir;
  std::filesystem::create_symlink("/dev/null", dir / "null.vocab");
  expect_error(Exit::bad_input, {(dir / "null.vocab").string(), "a link"},
               [&] { t->save(dir / "null"); });
  const test::FullDisk disk;
  expect_error(Exit::io, {(dir / "full.vocab").string(), "File too large"},
               [&] { t->save(dir / "full"); });
}

BOOST_AUTO_TEST_CASE(source_and_target_tokenizers_are_shared_or_separate_as_configured) {
  const TempDir dir;
  const Split train{.source = {"a b"}, .target = {"x y z"}, .text = {}};
  const auto shared = make_tokenizers({.kind = TokenizerKind::words}, train, 1);
  BOOST_TEST(shared.shared());
  BOOST_TEST(shared.source->size() == 3 + 5);
  BOOST_TEST(shared.save(dir / "").size() == 1u);
  BOOST_TEST(std::filesystem::exists(dir / "tokenizer.vocab"));
  BOOST_TEST(Tokenizers::load(dir / "", TokenizerKind::words).source->size() == 8);

  const auto two = make_tokenizers({.kind = TokenizerKind::words, .shared = false}, train, 1);
  BOOST_TEST(!two.shared());
  BOOST_TEST(two.source->size() == 5);
  BOOST_TEST(two.target->size() == 6);
  BOOST_TEST(two.save(dir / "").size() == 2u);
  const auto back = Tokenizers::load(dir / "", TokenizerKind::words);
  BOOST_TEST(!back.shared());
  BOOST_TEST(back.target->piece(3) == "x");

  const auto mixed = make_tokenizers({.kind = TokenizerKind::words,
                                      .shared = false,
                                      .target_model = (dir / "tokenizer.vocab").string()},
                                     train, 1);
  BOOST_TEST(mixed.source->size() == 5);
  BOOST_TEST(mixed.target->size() == 8);
  const auto of_file = make_tokenizers(
      {.kind = TokenizerKind::words, .model = (dir / "tokenizer.vocab").string()}, train, 1);
  BOOST_TEST(of_file.shared());
  BOOST_TEST(of_file.target->size() == 8);
  const auto lm = make_tokenizers({.kind = TokenizerKind::characters, .shared = false},
                                  {.source = {}, .target = {}, .text = "ab\nc"}, 1);
  BOOST_TEST(lm.shared());
  BOOST_TEST(lm.target->size() == 3 + 4);
  const TempDir pieces;
  make_tokenizers({.vocab_size = 40}, train, 1).save(pieces / "");
  BOOST_TEST(Tokenizers::load(pieces / "", TokenizerKind::sentencepiece).shared());
}

BOOST_AUTO_TEST_SUITE_END()
