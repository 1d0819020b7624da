#include "data/sources/corpus.h"

#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(corpus)
using Lines = std::vector<std::string>;

namespace {

struct Files {
  TempDir dir;
  DataOptions options;

  void pairs(FilesOptions& files, const std::string& name, const std::string& de,
             const std::string& en) {
    files.source = {dir.write(name + ".de", de)};
    files.target = {dir.write(name + ".en", en)};
  }
  Corpus read(Reads reads = Reads::pairs) const { return read_corpus(options, reads, 1); }
};

std::string numbered(int n, const std::string& word) {
  std::string text;
  for (int i = 0; i < n; ++i) text += word + std::to_string(i) + "\n";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(three_splits_are_read_from_files) {
  Files f;
  f.pairs(f.options.train, "train", "eins\nzwei\n\n", "one\ntwo\nthree\n");
  f.pairs(f.options.valid, "valid", "drei\n", "three\n");
  f.options.test.source = {f.dir.write_gz("t1.de", "vier\n"), f.dir.write("t2.de", "fünf\n")};
  f.options.test.target = {f.dir.write("t.en", "four\nfive\n")};
  const Corpus corpus = f.read();
  BOOST_TEST(corpus.train.source == (Lines{"eins", "zwei", ""}), boost::test_tools::per_element());
  BOOST_TEST(corpus.train.target == (Lines{"one", "two", "three"}),
             boost::test_tools::per_element());
  BOOST_TEST(corpus.valid.target == (Lines{"three"}), boost::test_tools::per_element());
  BOOST_TEST(corpus.test.source == (Lines{"vier", "fünf"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lists_in_different_order_are_refused_although_their_totals_are_equal) {
  Files f;
  const std::string two = f.dir.write("two.de", "a\nb\n"),
                    three = f.dir.write("three.de", "c\nd\ne\n"),
                    two_en = f.dir.write("two.en", "A\nB\n"),
                    three_en = f.dir.write("three.en", "C\nD\nE\n");
  f.options.train = {{two, three}, {three_en, two_en}, {}};
  expect_error(Exit::bad_input,
               {"differ in the number of lines: 2 in " + two + ", 3 in " + three_en},
               [&] { f.read(); });
  f.options.train.target = {two_en, three_en};
  BOOST_TEST(f.read().train.target == (Lines{"A", "B", "C", "D", "E"}),
             boost::test_tools::per_element());
  f.options.train.target = {f.dir.write("all.en", "A\nB\nC\nD\nE\n")};  // another number of files
  BOOST_TEST(f.read().train.target.size() == 5u);
}

BOOST_AUTO_TEST_CASE(wildcard_reads_all_matching_files) {
  Files f;
  for (const char* folder : {"src", "src/a", "src/a/b", "src/.git", "other"})
    create_directories(f.dir / folder);
  for (const char* name : {"src/z.py", "src/a/y.py", "src/a/b/x.py", "src/a/b/x.txt",
                           "src/.git/w.py", "src/.hidden.py", "other/v.py"})
    f.dir.write(name, std::string(name) + "\n");
  f.dir.write("src/a/empty.py", "");
  create_directory_symlink(f.dir / "src", f.dir / "src/a/loop");
  const auto read = [&](const std::string& pattern) {
    f.options.train.text = {(f.dir / pattern).string()};
    return f.read(Reads::text).train.text;
  };
  BOOST_TEST(read("src/**/*.py") == "src/a/b/x.py\nsrc/a/y.py\nsrc/z.py\n");
  BOOST_TEST(read("**/**/[xz].py") == "src/a/b/x.py\nsrc/z.py\n");
  BOOST_TEST(read("src/*/?.py") == "src/a/y.py\n");
  BOOST_TEST(read("*/v.py") == "other/v.py\n");
  BOOST_TEST(read("src/a/**").starts_with("src/a/b/x.py\nsrc/a/b/x.txt\nsrc/a/y.py\n"));
  f.dir.write("src/[x].py", "brackets\n");
  BOOST_TEST(read("src/[x].py") == "brackets\n");
  expect_error(Exit::bad_input, {"data.train.text: no non-empty file matches ", "src/*.cpp"},
               [&] { read("src/*.cpp"); });
  expect_error(Exit::bad_input, {"--text: no non-empty file matches ", "src/*.cpp"}, [&] {
    read_split({{}, {}, {(f.dir / "src/*.cpp").string()}}, {.reads = Reads::text}, "files");
  });
  expect_error(Exit::bad_input, {"no non-empty file matches ", "src/a/e*"},
               [&] { read("src/a/e*"); });
  expect_error(Exit::bad_input, {"src/none.py: no such file"}, [&] { read("src/none.py"); });
}

BOOST_AUTO_TEST_CASE(splits_without_files_are_empty) {
  Files f;
  f.pairs(f.options.train, "train", "eins\n", "one\n");
  const Corpus corpus = f.read();
  BOOST_TEST(!corpus.train.empty());
  BOOST_TEST(corpus.valid.empty());
  BOOST_TEST(corpus.test.empty());
}

BOOST_AUTO_TEST_CASE(fractions_are_cut_from_end_of_train) {
  Files f;
  f.pairs(f.options.train, "train", numbered(100, "de"), numbered(100, "en"));
  f.options.valid_fraction = 0.1;
  f.options.test_fraction = 0.05;
  Corpus corpus = f.read();
  BOOST_TEST(corpus.train.source.size() == 85u);
  BOOST_TEST(corpus.valid.source.size() == 10u);
  BOOST_TEST(corpus.test.source.size() == 5u);
  BOOST_TEST(corpus.train.target.back() == "en84");
  BOOST_TEST(corpus.valid.source.front() == "de85");
  BOOST_TEST(corpus.valid.target.back() == "en94");
  BOOST_TEST(corpus.test.target.front() == "en95");
  BOOST_TEST(corpus.test.target.back() == "en99");

  f.pairs(f.options.valid, "valid", "drei\n", "three\n");  // files override the fraction
  corpus = f.read();
  BOOST_TEST(corpus.train.source.size() == 95u);
  BOOST_TEST(corpus.valid.source.size() == 1u);
  BOOST_TEST(corpus.test.source.size() == 5u);
}

BOOST_AUTO_TEST_CASE(fractions_of_text_are_cut_between_characters) {
  Files f;
  f.options.train.text = {f.dir.write("text", "0123456789")};
  f.options.valid_fraction = 0.25;
  Corpus corpus = f.read(Reads::text);
  BOOST_TEST(corpus.train.text == "0123456");  // floor(7.5)
  BOOST_TEST(corpus.valid.text == "789");
  BOOST_TEST(corpus.test.text == "");

  f.options.train.text = {f.dir.write("text", "aßaßaßaß")};  // 12 bytes
  f.options.valid_fraction = 2.0 / 12.0;
  corpus = f.read(Reads::text);
  BOOST_TEST(corpus.train.text + corpus.valid.text == "aßaßaßaß");
  BOOST_TEST((corpus.valid.text == "ß" || corpus.valid.text == "aß"));
  f.options.valid_fraction = 1.0 / 12.0;  // a cut within the last ß moves to the end
  expect_error(Exit::bad_input, {"data.train: too few bytes (12) for data.valid_fraction"},
               [&] { f.read(Reads::text); });
}

BOOST_AUTO_TEST_CASE(fractions_are_cut_from_lines_without_target) {
  Files f;
  f.options.train.text = {f.dir.write("lines", "a\nb\n\nc\nd\n")};
  f.options.valid_fraction = f.options.test_fraction = 0.2;
  const Corpus corpus = f.read(Reads::lines);
  BOOST_TEST((corpus.train.source == std::vector<std::string>{"a", "b", ""}));
  BOOST_TEST((corpus.valid.source == std::vector<std::string>{"c"}));
  BOOST_TEST((corpus.test.source == std::vector<std::string>{"d"}));
  BOOST_TEST(corpus.train.target.empty());
}

BOOST_AUTO_TEST_CASE(texts_without_final_newline_are_separated_by_newline) {
  Files f;
  f.options.train.text = {f.dir.write("a", "abc def"), f.dir.write("b", "ghi")};
  BOOST_TEST(f.read(Reads::text).train.text == "abc def\nghi");
}

BOOST_AUTO_TEST_CASE(texts_are_joined_unchanged) {
  Files f;
  f.options.train.text = {f.dir.write("a", "one\r\n\n"), f.dir.write_gz("b", "two")};
  const Corpus corpus = f.read(Reads::text);
  BOOST_TEST(corpus.train.text == "one\r\n\ntwo");
  BOOST_TEST(corpus.train.source.empty());
}

BOOST_AUTO_TEST_CASE(lowercase_option_applies_to_all_splits) {
  Files f;
  f.pairs(f.options.train, "train", "EINS Ä\n", "ONE\n");
  f.pairs(f.options.test, "test", "ZWEI\n", "Two\n");
  f.options.lowercase = true;
  const Corpus corpus = f.read();
  BOOST_TEST(corpus.train.source[0] == "eins ä");
  BOOST_TEST(corpus.train.target[0] == "one");
  BOOST_TEST(corpus.test.target[0] == "two");
  f.options.train = {.source = {}, .target = {}, .text = {f.dir.write("x", "ÀB\n")}};
  f.options.test = {};
  BOOST_TEST(f.read(Reads::text).train.text == "àb\n");
  f.options.train = {.source = {f.dir.write("list.csv", "A.png,Cat\nB/C.PNG,DOG\n")}};
  f.options.input = InputKind::image;  // the names of files keep their letters
  const Split images = f.read().train;
  BOOST_TEST(images.source == (Lines{(f.dir / "A.png").string(), (f.dir / "B/C.PNG").string()}),
             boost::test_tools::per_element());
  BOOST_TEST(images.target == (Lines{"cat", "dog"}), boost::test_tools::per_element());
}

// Each sample's target contains the place where the test put it.
BOOST_AUTO_TEST_CASE(origin_of_each_target_is_its_file_and_line) {
  Files f;
  const auto path = [&](const std::string& name) { return (f.dir / name).string(); };
  const std::vector<std::pair<std::string, std::string>> tables{
      {"a.csv", "source,target\na,a.csv:2\n\n\"b\nb\",a.csv:4\nc,a.csv:6\n"},
      {"b.jsonl",
       "\n{\"source\": \"a\", \"target\": \"b.jsonl:2\"}\n\n"
       "{\"source\": \"b\", \"target\": \"b.jsonl:4\"}\n"},
      {"c.tsv", "target\tsource\nc.tsv:2\ta\n"},
      {"d.conll", "\n# text\na d.conll:3\nb x\n\n\nc d.conll:7\nd x\n\ne d.conll:10"}};
  for (const auto& [name, content] : tables)
    f.options.train.source.push_back(f.dir.write(name, content));
  f.options.valid.source = {f.dir.write("lines.source", "a\n\nc\nd\ne\n")};
  f.options.valid.target = {f.dir.write("e.txt", "e.txt:1\ne.txt:2\n"),
                            f.dir.write("f.tsv", "id\ttarget\n1\tf.tsv:2\n2\tf.tsv:3\n"),
                            f.dir.write("g.txt", "g.txt:1\n")};
  const auto check = [&](const Split& split, std::size_t size) {
    BOOST_REQUIRE(split.target.size() == size);
    for (std::size_t i = 0; i < size; ++i)
      BOOST_TEST(split.target_origins.of(static_cast<std::int64_t>(i), "data") ==
                 path(split.target[i].substr(0, split.target[i].find(' '))));
  };
  check(f.read().train, 9);
  check(f.read().valid, 5);
  f.options.valid = {};
  f.options.valid_fraction = 0.4;
  f.options.test_fraction = 0.3;
  const Corpus cut = f.read();
  check(cut.train, 2);
  check(cut.valid, 4);
  check(cut.test, 3);
}

BOOST_AUTO_TEST_CASE(sample_without_line_is_named_by_its_folder_or_number) {
  BOOST_TEST(Origins().of(1, "data.train") == "data.train: line 2");
  Files f;
  for (const char* name : {"left 2", "right"}) {
    create_directories(f.dir / "images" / name);
    f.dir.write(std::string("images/") + name + "/1.png", "");
  }
  f.options.input = InputKind::image;
  f.options.train.source = {f.dir.write("list.csv", "1.png,up\n"), (f.dir / "images").string()};
  const Split train = f.read().train;
  BOOST_TEST(train.target == (Lines{"up", "left 2", "right"}), boost::test_tools::per_element());
  BOOST_TEST(train.target_origins.of(0, "data.train") == (f.dir / "list.csv").string() + ":1");
  BOOST_TEST(train.target_origins.of(1, "data.train") == (f.dir / "images").string());
}

BOOST_AUTO_TEST_CASE(missing_and_empty_files_and_unequal_line_counts_are_refused) {
  Files f;
  expect_error(Exit::usage, {"data.train.source"}, [&] { f.read(); });
  expect_error(Exit::usage, {"data.train.text"}, [&] { f.read(Reads::text); });
  f.pairs(f.options.train, "train", "eins\nzwei\n", "one\ntwo\nthree\n");
  expect_error(Exit::bad_input,
               {"2 in ", "train.de, 3 in ", "train.en", f.dir.write("train.de", "a\nb\n")},
               [&] { f.read(); });
  f.pairs(f.options.train, "train", "", "");
  expect_error(Exit::bad_input, {"train.de: empty file"}, [&] { f.read(); });
  f.pairs(f.options.train, "train", "x\n", "");
  expect_error(Exit::bad_input, {"train.en: empty file"}, [&] { f.read(); });
  f.pairs(f.options.train, "train", "x\n", "x\n");
  f.options.train.target = {};
  expect_error(Exit::usage, {"data.train.target"}, [&] { f.read(); });
  f.options.train.text = {f.dir.write_gz("empty.txt.gz", "")};
  expect_error(Exit::bad_input, {"empty.txt.gz: empty file"}, [&] { f.read(Reads::text); });
}

BOOST_AUTO_TEST_CASE(test_split_with_invalid_utf8_is_refused) {
  Files f;
  f.pairs(f.options.train, "train", "x\n", "x\n");
  f.pairs(f.options.test, "test", "x\n", "\xFF\n");
  expect_error(Exit::bad_input, {"test.en:1: invalid UTF-8"}, [&] { f.read(); });
}

BOOST_AUTO_TEST_CASE(fraction_that_leaves_split_empty_is_refused) {
  Files f;
  f.pairs(f.options.train, "train", "a\nb\n", "a\nb\n");
  f.options.valid_fraction = 0.9;
  f.options.test_fraction = 0.05;
  expect_error(Exit::bad_input, {"data.train: too few lines (2)"}, [&] { f.read(); });
}

BOOST_AUTO_TEST_CASE(synthetic_splits_have_requested_sizes_and_conflicting_options_are_refused) {
  DataOptions options;
  options.synthetic = {.name = SyntheticKind::copy, .train = 20, .valid = 3, .test = 4};
  const Corpus corpus = read_corpus(options, Reads::pairs, 1);
  BOOST_TEST(corpus.train.source.size() == 20u);
  BOOST_TEST(corpus.valid.source.size() == 3u);
  BOOST_TEST(corpus.test.target.size() == 4u);
  expect_error(Exit::usage, {"data.synthetic", "seq2seq"},
               [&] { read_corpus(options, Reads::text, 1); });
  options.synthetic.symbols = 30;
  options.lowercase = true;
  expect_error(Exit::usage, {"data.lowercase"}, [&] { read_corpus(options, Reads::pairs, 1); });
  options.synthetic.name = SyntheticKind::dates;
  options.synthetic.symbols = 26;
  const Corpus dates = read_corpus(options, Reads::pairs, 1);
  for (const auto& line : dates.train.source) {
    BOOST_TEST(std::none_of(line.begin(), line.end(), [](char c) { return 'A' <= c && c <= 'Z'; }));
  }
}

BOOST_AUTO_TEST_SUITE_END()
