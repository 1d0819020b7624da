/// Special pieces in addition to <unk>, <s> and </s>, in every kind of tokenizer, and messages
/// during learning.
#include "data/tokenizers/tokenizer.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(specials)
using Lines = std::vector<std::string>;

namespace {

const Lines names{"<pad>", "<mask>", "<extra_id_0>"};
constexpr auto kinds = {TokenizerKind::characters, TokenizerKind::bytes, TokenizerKind::words,
                        TokenizerKind::sentencepiece};

std::unique_ptr<Tokenizer> learn(TokenizerKind kind, const Lines& specials,
                                 std::int64_t size = 64) {
  Lines lines = sentences(200, 1);
  lines.push_back("<mask> in the text is text <pad>");
  return train_tokenizer({.kind = kind, .vocab_size = size, .specials = specials}, lines, 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(further_specials_begin_at_id_3) {
  for (const TokenizerKind kind : kinds) {
    const auto t = learn(kind, names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      BOOST_TEST((t->special(names[i]) == static_cast<std::int32_t>(3 + i)));
      BOOST_TEST(t->piece(static_cast<std::int32_t>(3 + i)) == names[i]);
    }
    BOOST_TEST((t->special("<unk>") == Tokenizer::unk));
    BOOST_TEST((t->special("<s>") == Tokenizer::bos));
    BOOST_TEST((t->special("</s>") == Tokenizer::eos));
    BOOST_TEST(!t->special("<cls>"));
    BOOST_TEST(!t->special("e"));
    BOOST_TEST(!t->special(""));
  }
}

BOOST_AUTO_TEST_CASE(text_is_never_encoded_as_special_and_decoding_omits_specials) {
  for (const TokenizerKind kind : kinds) {
    const auto t = learn(kind, names);
    const std::string line = sentences(1, 1)[0], marked = line + " <mask> " + line;
    for (const std::int32_t id : t->encode(marked))
      BOOST_TEST((id == Tokenizer::unk || id >= 3 + 3), static_cast<int>(kind) << ": " << id);
    std::vector<std::int32_t> ids = t->encode(line);
    ids.insert(ids.begin(), *t->special("<extra_id_0>"));
    ids.push_back(*t->special("<pad>"));
    ids.push_back(Tokenizer::eos);
    BOOST_TEST(t->decode(ids) == t->decode(t->encode(line)));
  }
}

BOOST_AUTO_TEST_CASE(loaded_tokenizer_preserves_specials) {
  const TempDir dir;
  for (const TokenizerKind kind : kinds) {
    const auto t = learn(kind, names);
    const auto file = t->save(dir / "stem");
    const auto back = load_tokenizer(file, kind);
    BOOST_TEST(back->size() == t->size());
    for (std::int32_t id = 0; id < t->size(); ++id) BOOST_TEST(back->piece(id) == t->piece(id));
    for (const std::string& name : names) BOOST_TEST((back->special(name) == t->special(name)));
    const std::string line = "<mask> " + sentences(1, 1)[0];
    BOOST_TEST(back->encode(line) == t->encode(line), boost::test_tools::per_element());
    BOOST_TEST(slurp(back->save(dir / "again")) == slurp(file));
  }
}

BOOST_AUTO_TEST_CASE(vocabulary_file_marks_specials) {
  const TempDir dir;
  const auto t = train_tokenizer({.kind = TokenizerKind::words, .specials = {"<mask>"}},
                                 Lines{"<mask> a", "a"}, 1);
  BOOST_TEST(slurp(t->save(dir / "v")) == "<unk>\n<s>\n</s>\n\\!<mask>\na\n<mask>\n");
  BOOST_TEST((t->special("<mask>") == 3));
  BOOST_TEST(t->encode("<mask>").front() == 5);  // the ordinary word <mask>
}

// A vocabulary file without further special pieces keeps its ids, and is saved with the same bytes.
BOOST_AUTO_TEST_CASE(vocabulary_file_without_further_specials_is_unchanged) {
  const TempDir dir;
  const std::string old = "<unk>\n<s>\n</s>\na\n\\x3Cs>\n<pad>\n";
  const auto t = load_tokenizer(dir.write("old.vocab", old), TokenizerKind::words);
  BOOST_TEST(t->size() == 6);
  BOOST_TEST(!t->special("<pad>"));  // an ordinary word
  BOOST_TEST(t->encode("<s> <pad>") == (std::vector<std::int32_t>{4, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(slurp(t->save(dir / "new")) == old);
  for (const TokenizerKind kind : kinds) {
    const auto without = learn(kind, {}), with = learn(kind, names, 64 + 3);
    BOOST_TEST(with->size() == without->size() + 3);
    BOOST_TEST(with->piece(6) == without->piece(3));
  }
}

BOOST_AUTO_TEST_CASE(missing_or_invalid_special_is_refused) {
  const TempDir dir;
  for (const TokenizerKind kind : kinds) {
    const std::string file = learn(kind, {"<pad>"})->save(dir / "v").string();
    const Split train{.source = {"a"}, .target = {"b"}, .text = {}};
    const auto make = [&](const Lines& wanted) {
      return make_tokenizers({.kind = kind, .specials = wanted, .model = file}, train, 1);
    };
    BOOST_TEST((make({"<pad>"}).source->special("<pad>") == 3));
    expect_error(Exit::usage, {"tokenizer.specials: " + file + " has no special piece <mask>"},
                 [&] {
                   make({"<pad>", "<mask>"});
                 });
    for (const char* bad : {"", "<>", "mask", "<mask", "<a b>", "<a,b>", "<\xC3\xA4>", "<a\n>",
                            "<<a>>", "<a>b>", "<a\x7F>"}) {
      expect_error(Exit::usage, {"tokenizer.specials: \"", "is not a name like <mask>"},
                   [&] { learn(kind, {bad}); });
    }
    expect_error(Exit::usage, {"is not a name"},
                 [&] { learn(kind, {"<" + std::string(63, 'a') + ">"}); });
    expect_error(Exit::usage, {"tokenizer.specials: duplicate <a>"}, [&] {
      learn(kind, {"<a>", "<b>", "<a>"});
    });
    expect_error(Exit::usage, {"duplicate <s>"}, [&] { learn(kind, {"<s>"}); });
  }
  const std::string head = "<unk>\n<s>\n</s>\n\\!<a>\n";
  for (const char* line : {"\\!a", "\\!", "\\!<a>"}) {
    const auto file = dir.write("x.vocab", head + line + "\nx\n");
    expect_error(Exit::bad_input, {file + ":5:", "special pieces must be distinct names"},
                 [&] { load_tokenizer(file, TokenizerKind::words); });
  }
  const auto late = dir.write("late.vocab", head + "x\n\\!<b>\n");
  expect_error(Exit::bad_input, {late + ":6:", "not a piece"},
               [&] { load_tokenizer(late, TokenizerKind::words); });
  expect_error(Exit::usage, {"tokenizer.vocab_size: must be at least 7"},
               [&] { learn(TokenizerKind::words, names, 6); });
}

BOOST_AUTO_TEST_CASE(learning_reports_start_and_small_vocabulary) {
  const auto messages_of = [](const TokenizerOptions& options) {
    Split train;
    train.source = train.target = sentences(100, 1);
    Lines all;
    make_tokenizers(options, train, 1, [&](const std::string& line) { all.push_back(line); });
    return all;
  };
  const Lines small = messages_of({.vocab_size = 5000});
  BOOST_REQUIRE(small.size() == 2u);
  BOOST_TEST(small[0] == "learning a vocabulary of 5000 pieces from 200 lines");
  BOOST_TEST(small[1].starts_with("note: the vocabulary has "), small[1]);
  BOOST_TEST(small[1].find("fewer than tokenizer.vocab_size (5000)") != std::string::npos,
             small[1]);
  BOOST_TEST(messages_of({.vocab_size = 50}).size() == 1u);
  BOOST_TEST(messages_of({.kind = TokenizerKind::words})
                 .empty());  // learning words is fast and not reported
}

BOOST_AUTO_TEST_CASE(more_special_pieces_than_letters_are_accepted) {
  Lines many;
  for (int i = 0; i < 150; ++i) many.push_back("<extra_id_" + std::to_string(i) + ">");
  for (const TokenizerKind kind : kinds) {
    const auto t = learn(kind, many, 300);
    BOOST_TEST((t->special("<extra_id_149>") == 152));
    BOOST_TEST((t->first_ordinary() == 153));
  }
}

BOOST_AUTO_TEST_CASE(text_with_specials_is_encoded_and_decoded) {
  for (const TokenizerKind kind : kinds) {
    const auto t = learn(kind, names);
    const auto ids = t->encode_with_specials("<mask>in the<pad> text <unk> <mask");
    std::vector<std::int32_t> expected{4};
    for (const std::int32_t id : t->encode("in the")) expected.push_back(id);
    expected.push_back(3);
    for (const std::int32_t id : t->encode(" text <unk> <mask")) expected.push_back(id);
    BOOST_TEST(ids == expected);
    const std::vector<std::int32_t> a = t->encode("in the"), b = t->encode("text");
    std::vector<std::int32_t> row{5};
    row.insert(row.end(), a.begin(), a.end());
    row.insert(row.end(), {4, Tokenizer::eos});
    row.insert(row.end(), b.begin(), b.end());
    BOOST_TEST(t->decode_with_specials(row) ==
               "<extra_id_0> " + t->decode(a) + " <mask> " + t->decode(b));
  }
  const auto lower = [](std::string text) { return "in" + text; };
  const auto t = learn(TokenizerKind::words, names);
  BOOST_TEST((t->encode_with_specials("<mask>", lower).size() == 3u));  // "in", the mask, "in"
}

BOOST_AUTO_TEST_SUITE_END()
