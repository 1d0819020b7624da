#include "autograd/io/lines.h"

#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(lines)
using Lines = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(lines_are_read_without_line_endings_or_byte_order_mark) {
  const TempDir dir;
  const auto check = [&](std::string_view content, const Lines& expected) {
    BOOST_TEST(read_lines(dir.write("plain", content)) == expected,
               boost::test_tools::per_element());
    BOOST_TEST(read_lines(dir.write_gz("packed", content)) == expected,
               boost::test_tools::per_element());
  };
  check("one\ntwo\n", {"one", "two"});
  check("one\ntwo", {"one", "two"});
  check("one\r\ntwo\r\n", {"one", "two"});
  check("\n\nx\n\n", {"", "", "x", ""});
  check("", {});
  check("\n", {""});
  check("\xEF\xBB\xBFgrün\n", {"grün"});          // a byte-order mark
  check("\xEF\xBB\xBF", {});                      // only a byte-order mark
  check("a\vb\u2028c\rd\n", {"a\vb\u2028c\rd"});  // only \n ends a line
}

BOOST_AUTO_TEST_CASE(text_is_read_unchanged) {
  const TempDir dir;
  const std::string text = "one\r\n\n  two\n\nend";
  BOOST_TEST(read_text(dir.write("t", text)) == text);
  BOOST_TEST(read_text(dir.write_gz("t.gz", text)) == text);
  const auto pieces = text_lines(text);
  BOOST_TEST(pieces.size() == 5u);
  std::string joined;
  for (const auto& piece : pieces) joined += piece;
  BOOST_TEST(joined == text);
}

BOOST_AUTO_TEST_CASE(lines_of_files_and_gzip_members_are_joined) {
  const TempDir dir;
  const auto a = dir.write("a", "1\n2\n"), b = dir.write_gz("b", "3\n");
  BOOST_TEST(read_lines(Lines{a, b, a}) == (Lines{"1", "2", "3", "1", "2"}),
             boost::test_tools::per_element());
  // Two concatenated gzip files are one gzip file.
  const auto both = dir.write("both.gz", slurp(b) + slurp(dir.write_gz("c", "4\n")));
  BOOST_TEST(read_lines(both) == (Lines{"3", "4"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(large_gzip_file_is_read_like_plain_file) {
  const TempDir dir;
  std::string content;
  for (const auto& line : sentences(30000, 5)) content += line + "\n";
  BOOST_TEST(content.size() > 1'000'000u);  // several chunks of the reader
  BOOST_TEST((read_lines(dir.write("p", content)) == read_lines(dir.write_gz("z", content))));
}

BOOST_AUTO_TEST_CASE(pipe_is_read_to_end) {  // the size of a pipe is unknown
  const TempDir dir;
  const std::string path = (dir / "pipe").string();
  BOOST_REQUIRE_EQUAL(mkfifo(path.c_str(), 0600), 0);
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 8192, 100000}) {
    std::string content(size, 'x');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + i % 23);
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << content; });
    BOOST_TEST((read_file(path) == content), size << " bytes");
    writer.join();
  }
}

BOOST_AUTO_TEST_CASE(size_limit_applies_to_plain_files_gzip_files_and_pipes) {
  const TempDir dir;
  const std::string content(10'000, 'x'), longer = "longer than 9999 bytes";
  const auto plain = dir.write("plain", content), packed = dir.write_gz("packed", content);
  BOOST_TEST((read_file(plain, 10'000) == content));
  BOOST_TEST((read_file(packed, 10'000) == content));
  BOOST_TEST(read_lines(plain, 10'000).size() == 1u);
  expect_error(Exit::bad_input, {plain, longer}, [&] { read_file(plain, 9'999); });
  expect_error(Exit::bad_input, {plain, longer}, [&] { read_lines(plain, 9'999); });
  expect_error(Exit::bad_input, {packed, "unpacks to more than 9999 bytes"},
               [&] { read_file(packed, 9'999); });
  const std::string pipe = (dir / "pipe").string();
  BOOST_REQUIRE_EQUAL(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << content; });
  expect_error(Exit::bad_input, {pipe, longer}, [&] { read_file(pipe, 9'999); });
  writer.join();
}

BOOST_AUTO_TEST_CASE(missing_file_and_path_of_folder_are_refused) {
  const TempDir dir;
  expect_error(Exit::bad_input, {(dir / "nowhere.de").string(), "no such file"},
               [&] { read_lines((dir / "nowhere.de").string()); });
  const auto folder = std::filesystem::current_path().string();
  expect_error(Exit::bad_input, {folder + "/no-such-file.de: no such file"},
               [] { read_lines("./no-such-file.de"); });
  expect_error(Exit::bad_input, {(dir / "").string(), "folder"},
               [&] { read_lines((dir / "").string()); });
}

BOOST_AUTO_TEST_CASE(invalid_text_is_refused_with_position) {
  const TempDir dir;
  const auto file = dir.write("t.de", "gut\ngut\nna\xEFve\n");
  for (const bool text : {false, true}) {
    expect_error(Exit::bad_input, {file + ":3: invalid UTF-8 at byte 3", "0xEF"}, [&] {
      text ? static_cast<void>(read_text(file)) : static_cast<void>(read_lines(file));
    });
  }
  const auto nul = dir.write("n.de", std::string("gut\na\0b\n", 8));
  expect_error(Exit::bad_input, {nul + ":2: NUL byte at byte 2"}, [&] { read_lines(nul); });
  expect_error(Exit::bad_input, {nul + ":2: NUL byte"}, [&] { read_text(nul); });
}

BOOST_AUTO_TEST_CASE(line_of_more_than_a_million_bytes_is_refused) {
  const TempDir dir;
  const auto most = dir.write("most", "x\n" + std::string(1'000'000, 'a') + "\n");
  BOOST_TEST(read_lines(most).back().size() == 1'000'000u);
  const auto more = dir.write("more", "x\n" + std::string(1'000'001, 'a') + "\n");
  expect_error(Exit::bad_input, {more + ":2:", "a line of more than 1000000 bytes"},
               [&] { read_lines(more); });
  BOOST_TEST(read_text(more).size() == 1'000'004u);  // a line of continuous text may be longer
}

BOOST_AUTO_TEST_CASE(byte_order_mark_and_carriage_return_do_not_count_towards_line_length) {
  // Files are read in blocks of 64 KiB; the first block ends near the end of the first line.
  const TempDir dir;
  for (std::size_t longest = 65'530; longest < 65'540; ++longest) {
    for (const std::string mark : {"", "\xEF\xBB\xBF"}) {
      const auto file = dir.write("t", mark + std::string(longest, 'a') + "\r\nb\r\n");
      LineReader reader(file, longest, {});
      Lines found;
      for (std::string line; reader.next(line);) found.push_back(line);
      BOOST_TEST((found == Lines{std::string(longest, 'a'), "b"}), longest << " bytes");
      expect_error(Exit::bad_input, {file + ":1: a line of more than"}, [&] {
        LineReader strict(file, longest - 1, {});
        for (std::string line; strict.next(line);) {
        }
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(damaged_gzip_file_is_refused) {
  const TempDir dir;
  std::string content;
  for (const auto& line : sentences(2000, 1)) content += line + "\n";
  const std::string whole = slurp(dir.write_gz("whole.gz", content));
  for (const std::size_t keep :
       {whole.size() - 1, whole.size() - 8, whole.size() / 2, std::size_t{30}}) {
    const auto file = dir.write("cut.gz", whole.substr(0, keep));
    expect_error(Exit::bad_input, {file, "truncated"}, [&] { read_lines(file); });
  }
  std::string bad = whole;
  bad[whole.size() / 2] = static_cast<char>(bad[whole.size() / 2] ^ 0x55);
  const auto file = dir.write("bad.gz", bad);
  expect_error(Exit::bad_input, {file, "gzip"}, [&] { read_lines(file); });
  bad = whole;
  bad[whole.size() - 6] = static_cast<char>(bad[whole.size() - 6] ^ 1);  // a bit of the checksum
  expect_error(Exit::bad_input, {"damaged"}, [&] { read_lines(dir.write("sum.gz", bad)); });
}

BOOST_AUTO_TEST_SUITE_END()
