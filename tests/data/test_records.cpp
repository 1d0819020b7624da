/// Tables, lists of classes and CoNLL files: values, and messages about broken files.
#include "data/sources/records.h"

#include "data/sources/corpus.h"
#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(records)
using Lines = std::vector<std::string>;

namespace {

struct Pairs {
  Lines source, target;
  friend bool operator==(const Pairs&, const Pairs&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Pairs& pairs) {
    for (std::size_t i = 0; i < pairs.source.size(); ++i)
      out << '[' << pairs.source[i] << '|' << pairs.target[i] << ']';
    return out;
  }
};

/// The pairs of a file with this name and content.
Pairs pairs_in(const std::string& name, const std::string& content,
               const ColumnOptions& columns = {}, FileFormat format = FileFormat::automatic) {
  const TempDir dir;
  const std::string path =
      name.ends_with(".gz") ? dir.write_gz(name, content) : dir.write(name, content);
  const Split split =
      read_split({.source = {path}}, {.format = format, .columns = columns}, "train");
  return {split.source, split.target};
}

void refused(const std::string& name, const std::string& content,
             std::initializer_list<std::string_view> parts, const ColumnOptions& columns = {}) {
  expect_error(Exit::bad_input, parts, [&] { pairs_in(name, content, columns); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(format_follows_from_option_or_name) {
  BOOST_TEST((format_of("a.b/c.csv", FileFormat::automatic) == FileFormat::csv));
  BOOST_TEST((format_of("c.conllu.gz", FileFormat::automatic) == FileFormat::conll));
  BOOST_TEST((format_of("c.jsonl.txt", FileFormat::automatic) == FileFormat::lines));
  BOOST_TEST((format_of("c.jsonl", FileFormat::tsv) == FileFormat::tsv));
  BOOST_TEST((format_of("-", FileFormat::tsv) == FileFormat::lines));
}

BOOST_AUTO_TEST_CASE(csv_cells_follow_rfc_4180) {
  // The sources and targets below contain each special character, at both ends and within a cell.
  const std::string table =
      "id,target,source\r\n"
      "1,\"a, \"\"b\"\"\",plain \"c\" \r\n"
      "2,\"\",\"\"\"\"\r\n"
      "\r\n"
      "3,,\",\"\n"
      "4,ä,\"two\r\nlines,\n\"\n"
      "5,\"x\",\"y\"";
  const Pairs expected{{"plain \"c\" ", "\"", ",", "two lines, ", "y"},
                       {"a, \"b\"", "", "", "ä", "x"}};
  BOOST_TEST(pairs_in("t.csv", table) == expected);
  BOOST_TEST(pairs_in("t.csv.gz", "\xEF\xBB\xBF" + table) == expected);
  BOOST_TEST(pairs_in("t.txt", table, {}, FileFormat::csv) == expected);
}

BOOST_AUTO_TEST_CASE(tsv_gives_quotation_marks_no_meaning) {
  const Pairs expected{{"\"Hello,\" he said.", "", "a,b"}, {"x", "\"", ""}};
  BOOST_TEST(pairs_in("t.tsv", "source\ttarget\n\"Hello,\" he said.\tx\n\t\"\n\na,b\t\n") ==
             expected);
}

BOOST_AUTO_TEST_CASE(jsonl_values_are_texts_numbers_truth_values_and_lists_of_words) {
  const Pairs expected{{"a\"b  ä", "-2.5", "EU rejects 7"}, {"1", "true", ""}};
  BOOST_TEST(
      pairs_in("t.jsonl",
               "{\"source\": \"a\\\"b\\t\\n\\u00e4\", \"target\": 1, \"x\": {\"source\": null}}\n"
               "\n"
               "{\"target\": true, \"source\": -2.5}\r\n"
               " {\"target\": [], \"source\": [\"EU\", \"rejects\", 7]}") == expected);
}

BOOST_AUTO_TEST_CASE(columns_are_chosen_by_name_by_number_or_by_default) {
  const std::string csv = "label,premise,text,hypothesis\nyes,a,b,c\n";
  BOOST_TEST(pairs_in("t.csv", csv) == (Pairs{{"b"}, {"yes"}}));
  BOOST_TEST(pairs_in("t.csv", csv, {.source = {"premise", "hypothesis"}, .target = {"text"}}) ==
             (Pairs{{"a\tc"}, {"b"}}));
  BOOST_TEST(pairs_in("t.csv", csv, {.source = {"4"}, .target = {"2"}}) ==
             (Pairs{{"hypothesis", "c"}, {"premise", "a"}}));
  BOOST_TEST(pairs_in("t.csv", "2,1,2b\na,b,c\n", {.source = {"1"}, .target = {"2b"}}) ==
             (Pairs{{"b"}, {"c"}}));  // not all are numbers, so all are names
  BOOST_TEST(pairs_in("t.csv", "01,2\na,b\n", {.source = {"01"}, .target = {"2"}}) ==
             (Pairs{{"a"}, {"b"}}));
  const std::string jsonl =
      "{\"label\": 0, \"premise\": \"a\\tz\", \"text\": \"b\", \"hypothesis\": \"c\"}\n";
  BOOST_TEST(pairs_in("t.jsonl", jsonl) == (Pairs{{"b"}, {"0"}}));
  BOOST_TEST(pairs_in("t.jsonl", jsonl, {.source = {"premise", "hypothesis"}}) ==
             (Pairs{{"a z\tc"}, {"0"}}));
}

BOOST_AUTO_TEST_CASE(conll_sentences_become_lines_of_words_and_tags) {
  const std::string english =
      "-DOCSTART- -X- -X- O\n\n"
      "EU NNP  B-NP B-ORG\n# NN I-NP O\n\n\n"
      "# a comment\n#\nPeter NNP B-NP B-PER \r\n1-2 CD I-NP O\n \n";
  BOOST_TEST(pairs_in("eng.conll", english) ==
             (Pairs{{"EU #", "Peter 1-2"}, {"B-ORG O", "B-PER O"}}));
  BOOST_TEST(pairs_in("eng.testa", english, {.source = {"2"}, .target = {"1"}},
                      FileFormat::conll) == (Pairs{{"NNP NN", "NNP CD"}, {"EU #", "Peter 1-2"}}));
  BOOST_TEST(pairs_in("w.conll.gz", "#nba\tO\nä\tB-x\n") == (Pairs{{"#nba ä"}, {"O B-x"}}));
  const std::string universal =
      "# text = vámonos al mar\n"
      "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
      "1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
      "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_\n"
      "2.1\tx\tx\tX\t_\t_\t_\t_\t_\t_\n";
  BOOST_TEST(pairs_in("u.conllu", universal, {.source = {"2"}, .target = {"4"}}) ==
             (Pairs{{"vamos nos"}, {"VERB PRON"}}));
}

BOOST_AUTO_TEST_CASE(texts_of_tables_are_joined_or_become_one_line_each) {
  const TempDir dir;
  DataOptions options;
  options.columns.text = {"body"};
  options.train.text = {dir.write("a.csv", "id,body\n1,\"two\r\n\tlines\"\n2,\n"),
                        dir.write("b.txt", "plain"),
                        dir.write("c.jsonl", "{\"body\": \"x\\ny\"}\n")};
  BOOST_TEST(read_corpus(options, Reads::text, 1).train.text == "two\n\tlines\n\nplain\nx\ny\n");
  BOOST_TEST(read_corpus(options, Reads::lines, 1).train.source ==
                 (Lines{"two  lines", "", "plain", "x y"}),
             boost::test_tools::per_element());
  options.valid_fraction = 0.25;
  BOOST_TEST(read_corpus(options, Reads::lines, 1).valid.source == Lines{"x y"},
             boost::test_tools::per_element());
  options.valid_fraction = 0;
  options.train.text = {dir.write("e.tsv", "body\na\n\nb\n")};  // an empty line is an empty cell
  BOOST_TEST(read_corpus(options, Reads::lines, 1).train.source == (Lines{"a", "", "b"}),
             boost::test_tools::per_element());
  options.format = FileFormat::lines;
  options.train.text = {dir.write("d.csv", "a,b\n")};
  BOOST_TEST(read_corpus(options, Reads::text, 1).train.text == "a,b\n");
}

BOOST_AUTO_TEST_CASE(target_file_replaces_target_column) {
  const TempDir dir;
  const ReadOptions options{.prefixes = {"A: ", "B: "}};
  const FilesOptions files{{dir.write("s.csv", "source,target\na,x\nb,y\n"), dir.write("s", "c\n")},
                           {dir.write("t", "1\n2\n"), dir.write("t.tsv", "source\tlabel\nd\t3\n")}};
  const Split split = read_split(files, options, "train");
  BOOST_TEST(split.source == (Lines{"A: a", "A: b", "B: c"}), boost::test_tools::per_element());
  BOOST_TEST(split.target == (Lines{"1", "2", "3"}), boost::test_tools::per_element());
  BOOST_TEST((split.parts[0].name == "A" && split.parts[0].size == 2 && split.parts[1].size == 1));
  expect_error(Exit::bad_input, {"differ in the number of lines: 2 in ", "s.csv", "1 in ", "t.tsv"},
               [&] {
                 read_split({{files.source[0]}, {files.target[1]}}, {}, "train");
               });
  expect_error(Exit::usage, {"data.train.target: names no file"}, [&] {
    read_split({{files.source[0], files.source[1]}}, {}, "train");
  });
}

BOOST_AUTO_TEST_CASE(broken_table_is_refused_with_file_line_and_column) {
  refused("t.csv", "", {"t.csv: empty file"});
  refused("t.csv", "source,target\n\n", {"t.csv: no record"});
  refused(
      "t.csv", "\na,\"b,\"\n",
      {"t.csv:2: no column \"source\" or \"text\" (data.columns.source); the columns are \"a\", "
       "\"b,\""});
  refused("t.csv", "a,b\n", {"t.csv:1: no column \"x\" (data.columns.source)"}, {.source = {"x"}});
  refused("t.csv", "text,a\n", {"no column \"target\" or \"label\" (data.columns.target)"});
  refused("t.csv", "source,target,source\n",
          {"t.csv:1: two columns are called \"source\" (data.columns.source)"});
  refused("t.csv", "source,target\na,b\n\"c\nd\",e,f\n", {"t.csv:3: 3 columns; line 1 has 2"});
  refused("t.tsv", "source\ttarget\na\n", {"t.tsv:2: 1 columns; line 1 has 2"});
  refused("t.csv", "source,target\na,\"b\nc,d\n", {"t.csv:2: column 2: no closing quotation mark"});
  refused("t.csv", "source,target\n\"a\" b,c\n",
          {"t.csv:2: column 1: text after the closing quotation mark"});
  refused("t.csv", "a,b\n", {"t.csv:1: 2 columns, but data.columns.target is 3"},
          {.source = {"2"}, .target = {"3"}});
  refused("t.csv", "source,target\na,\xC3(\n", {"t.csv:2: invalid UTF-8"});
  refused("t.csv", "source,target\na," + std::string(1'000'001, 'x') + "\n",
          {"t.csv:2: data.columns.target: a text of more than 1000000 bytes"});
}

BOOST_AUTO_TEST_CASE(broken_json_line_is_refused_with_line_and_column) {
  const std::string first = "{\"source\": \"a\", \"target\": \"b\"}\n";
  refused("t.jsonl", "\n", {"t.jsonl: no record"});
  refused("t.jsonl", first + "{\"source\": \"a\"\n", {"t.jsonl:2: byte 15: not valid JSON"});
  refused("t.jsonl", first + "\n[1]\n", {"t.jsonl:3: not a JSON object"});
  refused("t.jsonl", first + "{\"source\": \"a\"}\n",
          {"t.jsonl:2: no column \"target\" (data.columns.target); the columns are \"source\""});
  refused("t.jsonl", "{\"a\": 1}\n",
          {"t.jsonl:1: no column \"source\" or \"text\"", "the columns are \"a\""});
  for (const char* wrong : {"null", "{}", "[[\"a\"]]", "[null]", "[\"a b\"]", "[\"\"]"})
    refused("t.jsonl", fmt::format("{{\"source\": \"a\", \"target\": {}}}", wrong),
            {"t.jsonl:1: \"target\": "});
  refused("t.jsonl", "{\"source\": \"a\", \"target\": null}",
          {"\"target\": expected a text, a number, true, false or a list of these"});
  refused("t.jsonl", "{\"source\": \"a\", \"target\": [\"a b\"]}",
          {"\"target\": \"a b\" in a list is not a word"});
  refused("t.jsonl", "{\"source\": \"a\\u0000\", \"target\": \"b\"}\n",
          {"t.jsonl:1: data.columns.source: NUL byte"});
}

BOOST_AUTO_TEST_CASE(broken_conll_file_is_refused_with_line_and_column) {
  refused("t.conll", "# no token\n\n", {"t.conll: no record"});
  refused("t.conll", "a\n", {"t.conll:1: one column; expected a token and its tag"});
  refused("t.conll", "a X O\nb Y\n", {"t.conll:2: 2 columns; line 1 has 3"});
  refused("t.conll", "a\tO\nb c\tO\n", {"t.conll:2: column 1: \"b c\" is not a word"});
  refused("t.conll", "a\tO\nb\t\n", {"t.conll:2: column 2: \"\" is not a word"});
  refused("t.conll", "a O\n", {"t.conll:1: 2 columns, but data.columns.source is 3"},
          {.source = {"3"}});
  std::string endless;
  for (int i = 0; i < 200'001; ++i) endless += "word O\n";
  refused("t.conll", endless, {"t.conll:200001: a sentence of more than 1000000 bytes"});
  for (const ColumnOptions& columns : {ColumnOptions{.target = {"tag"}}, {.target = {"1", "2"}}})
    expect_error(Exit::usage,
                 {"data.columns.target: \"", "in a CoNLL file, the column is a number"},
                 [&] { pairs_in("t.conll", "a O\n", columns); });
}

BOOST_AUTO_TEST_CASE(subfolders_are_classes_and_alternate_in_proportion) {
  const TempDir dir;
  for (const char* folder : {"cat/nested", "dog", "fox", ".hidden"})
    create_directories(dir / folder);
  for (const char* name : {"cat/1", "cat/2", "cat/nested/3", "cat/4", "cat/.5", "dog/1", "dog/2",
                           "fox/1", ".hidden/1", "README"})
    dir.write(name, "x");
  const FilesOptions files{.source = {(dir / "").string()}};
  const ReadOptions options{.input = InputKind::image};
  const Split split = read_split(files, options, "train");
  Lines expected;
  for (const char* name : {"cat/1", "dog/1", "cat/2", "fox/1", "cat/4", "dog/2", "cat/nested/3"})
    expected.push_back((dir / name).string());
  BOOST_TEST(split.source == expected, boost::test_tools::per_element());
  BOOST_TEST(split.target == (Lines{"cat", "dog", "cat", "fox", "cat", "dog", "cat"}),
             boost::test_tools::per_element());
  expect_error(Exit::usage, {"data.train.target: ", "already contains the targets"}, [&] {
    read_split({files.source, {dir.write("t", "x\n")}}, options, "train");
  });
  expect_error(Exit::bad_input, {"cat: no subfolder; expected a folder for each class"}, [&] {
    remove_all(dir / "cat/nested");
    read_split({{(dir / "cat").string()}}, options, "train");
  });
  expect_error(Exit::bad_input, {"empty: no file"}, [&] {
    create_directories(dir / "empty");
    read_split(files, options, "train");
  });
}

BOOST_AUTO_TEST_CASE(tables_name_inputs_relative_to_their_folder) {
  const TempDir dir;
  create_directories(dir / "a");
  const auto read = [&](const std::string& path, const ReadOptions& options) {
    const Split split = read_split({.source = {path}}, options, "train");
    return Pairs{split.source, split.target};
  };
  const Pairs expected{{(dir / "a/x.png").string(), (dir / "a/b/y.png").string()}, {"1", "2"}};
  BOOST_TEST(read(dir.write("a/t.tsv", "label\tsource\n1\tx.png\n2\tb/y.png\n"),
                  {.input = InputKind::image}) == expected);
  BOOST_TEST(read(dir.write("a/t.csv", "file,class\nx.png,1\nb/y.png,2\n"),
                  {.input = InputKind::image,
                   .columns = {.source = {"file"}, .target = {"class"}}}) == expected);
  BOOST_TEST(read(dir.write_gz("a/t.csv.gz", "x.png,1\nb/y.png,2\n"),
                  {.input = InputKind::image}) == expected);
}

BOOST_AUTO_TEST_CASE(inputs_of_generation_are_sources_or_texts) {
  const TempDir dir;
  const std::string csv = dir.write("t.csv", "target,text,source\nx,\"a\nb\",c\n"),
                    plain = dir.write("t", "x,y\n");
  const auto read = [&](const std::string& path, const ReadOptions& options) {
    RecordReader reader = read_inputs(path, options);
    Lines lines;
    for (Lines values; reader.next(values);) lines.push_back(values.front());
    return lines;
  };
  BOOST_TEST(read(csv, {}) == Lines{"c"}, boost::test_tools::per_element());
  BOOST_TEST(read(csv, {.reads = Reads::text}) == Lines{"a b"}, boost::test_tools::per_element());
  BOOST_TEST(read(plain, {}) == Lines{"x,y"}, boost::test_tools::per_element());
  BOOST_TEST(read(plain, {.input = InputKind::image}) == Lines{"x,y"},
             boost::test_tools::per_element());
  BOOST_TEST(read(csv, {.input = InputKind::image, .columns = {.source = {"target"}}}) ==
                 Lines{(dir / "x").string()},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
