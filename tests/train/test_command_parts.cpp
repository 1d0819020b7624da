// Parts of the commands that cannot be tested through the command line: the gradient table with
// wrong gradients, lines that arrive in pieces, and output that is written completely or not at
// all.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "autograd/io/formats/gzip.h"
#include "autograd/io/lines.h"
#include "autograd/ops.h"
#include "tests/train/support.h"
#include "train/commands/output.h"
#include "train/views/report/gradcheck_table.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(command_parts)

namespace {

ParameterCheck check_of(const std::string& name, GradcheckStatus status, double worst) {
  ParameterCheck c;
  c.name = name;
  c.shape = {2, 3};
  c.entries = c.checked = 6;
  c.worst_error = worst;
  c.status = status;
  return c;
}

GradcheckTable table_of(std::vector<ParameterCheck> checks) {
  GradcheckResult result;
  result.parameters = std::move(checks);
  GradcheckTable table;
  table.add(result);
  return table;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  LineReader reader(path.string());
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

}  // namespace

// ---- the gradient table --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(table_of_correct_gradients_passes) {
  const GradcheckTable table =
      table_of({check_of("w", GradcheckStatus::ok, 1e-9), check_of("b", GradcheckStatus::kink, 0)});
  BOOST_TEST(table.passed());
  BOOST_TEST(table.text().find("all 2 parameters have the right gradient") != std::string::npos,
             table.text());
  BOOST_TEST(table.json().at("passed") == true);
}

BOOST_AUTO_TEST_CASE(table_with_one_wrong_gradient_fails) {
  for (const GradcheckStatus status :
       {GradcheckStatus::wrong, GradcheckStatus::unstable, GradcheckStatus::non_finite}) {
    ParameterCheck wrong = check_of("decoder.b", status, std::numeric_limits<double>::infinity());
    wrong.cause = "a missing factor of 2";
    const GradcheckTable table = table_of({check_of("decoder.w", GradcheckStatus::ok, 0), wrong});
    BOOST_TEST(!table.passed());
    BOOST_TEST(table.text().find("WRONG") != std::string::npos);
    BOOST_TEST(table.text().find("a missing factor of 2") != std::string::npos);
    BOOST_TEST(table.text().find("failed: the gradient is wrong for 1 of 2 parameters") !=
                   std::string::npos,
               table.text());
    const nlohmann::json json = nlohmann::json::parse(table.json().dump());
    BOOST_TEST(json.at("passed") == false);
    BOOST_TEST(json.at("parameters").at(1).at("worst_error").is_null());
    BOOST_TEST(json.at("parameters").at(1).at("passed") == false);
  }
}

BOOST_AUTO_TEST_CASE(table_row_has_the_larger_error_of_two_checks) {
  GradcheckTable table = table_of({check_of("w", GradcheckStatus::ok, 1e-9)});
  ParameterCheck along = check_of("w", GradcheckStatus::wrong, 0.5);
  along.directional = true;
  along.checked = 2;
  GradcheckResult result;
  result.parameters = {along};
  table.add(result);
  BOOST_REQUIRE(table.rows.size() == 1u);
  BOOST_TEST(table.rows[0].checked == 6);
  BOOST_TEST(table.rows[0].directions == 2);
  BOOST_TEST(table.rows[0].worst_error == 0.5);
  BOOST_TEST(!table.passed());
}

BOOST_AUTO_TEST_CASE(empty_table_and_table_of_a_noisy_function_fail) {
  BOOST_TEST(!GradcheckTable().passed());
  GradcheckResult noisy;
  noisy.problem = "f is not deterministic";
  GradcheckTable table = table_of({check_of("w", GradcheckStatus::ok, 0)});
  table.add(noisy);
  BOOST_TEST(!table.passed());
  BOOST_TEST(table.text().find("f is not deterministic") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(wrong_backward_is_marked_in_the_table) {
  const Tensor w = Tensor::variable(Array::full({3}, 0.7));
  // f = Σ w ⊙ c, where c is a copy of w. The tape computes df/dw = c, but c also changes with w.
  const auto f = [&] { return sum(mul(w, Tensor(w.value().clone()))); };
  GradcheckTable table;
  table.add(gradcheck_parameters(f, {{"w", w}}));
  BOOST_TEST(!table.passed());
  BOOST_TEST(table.text().find("WRONG") != std::string::npos, table.text());
}

namespace {

/// y = x², with a backward that lacks the factor 2.
struct HalfSquare {
  Array x;
  Array forward(const Array& input) {
    x = input;
    return mul(x, x).value();
  }
  void backward(const Array& dy, Grad dx) const { dx.add(mul(x, dy).value()); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(table_names_the_wrong_op_of_a_model) {
  const Tensor w = Tensor::variable(Array::of({0.7, -0.4, 0.3}));
  const auto loss = [&] { return sum(mul(tanh(apply(HalfSquare{}, tanh(w))), exp(w))); };
  GradcheckTable table;
  table.add(gradcheck_parameters(loss, {{"w", w}}));
  table.add(gradcheck_parameters(loss, {{"w", w}}, {.directions = 2}));
  const std::string expected =
      "the backward of HalfSquare: the gradient of input 0 [3] is wrong: missing or wrong factor: "
      "analytic / numeric = 0.5 throughout";
  BOOST_TEST(table.wrong_op.starts_with(expected), table.wrong_op);
  BOOST_TEST(table.text().find("\nwrong op: " + expected) != std::string::npos, table.text());
  BOOST_TEST(table.json().at("wrong_op") == table.wrong_op);
}

// ---- reading lines --------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(line_endings_and_an_initial_byte_order_mark_are_removed) {
  const TempFolder folder;
  const auto check = [&](const std::string& bytes, const std::vector<std::string>& expected) {
    put(folder / "plain", bytes);
    BOOST_TEST(lines_of(folder / "plain") == expected, boost::test_tools::per_element());
    put(folder / "packed", pack_gzip(bytes));
    BOOST_TEST(lines_of(folder / "packed") == expected, boost::test_tools::per_element());
  };
  check("", {});
  check("\n", {""});
  check("a", {"a"});
  check("a\n", {"a"});
  check("\x1f", {"\x1f"});
  check("\x1f\n", {"\x1f"});
  check("a\r\n\n\r\nb\rc\r", {"a", "", "", "b\rc"});
  check(
      "\xEF\xBB\xBF"
      "a\n\xEF\xBB\xBF"
      "b",
      {"a",
       "\xEF\xBB\xBF"
       "b"});
}

BOOST_AUTO_TEST_CASE(lines_longer_than_the_buffer_are_read_completely) {
  const TempFolder folder;
  std::string text, expected(3'000'000, 'x');
  for (std::size_t i = 0; i < expected.size(); i += 97)
    expected[i] = static_cast<char>('a' + i % 23);
  put(folder / "f", "first\n" + expected + "\n" + expected + "last");
  const std::vector<std::string> lines = lines_of(folder / "f");
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST((lines[1] == expected));
  BOOST_TEST((lines[2] == expected + "last"));
}

BOOST_AUTO_TEST_CASE(gzip_members_are_read_as_one_text) {
  const TempFolder folder;
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += std::to_string(i) + "\n";
  put(folder / "f", pack_gzip("one\ntw") + pack_gzip("o\n") + pack_gzip("") + pack_gzip(many));
  const std::vector<std::string> lines = lines_of(folder / "f");
  BOOST_REQUIRE(lines.size() == 200'002u);
  BOOST_TEST(lines[1] == "two");
  BOOST_TEST(lines.back() == "199999");
}

BOOST_AUTO_TEST_CASE(broken_input_is_reported_with_its_file) {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    put(folder / "f", bytes);
    return error_of(Exit::bad_input, [&] { lines_of(folder / "f"); });
  };
  BOOST_TEST(error("a\nb\xC3\n").find("f:2: invalid UTF-8 at byte 2") != std::string::npos);
  BOOST_TEST(error(std::string("a\n\n\0", 4)).find("f:3: NUL byte") != std::string::npos);
  const std::string packed = pack_gzip("line\nline\nline two\n");
  BOOST_TEST(error(packed.substr(0, packed.size() - 4)).find("truncated") != std::string::npos);
  BOOST_TEST(error(packed.substr(0, 3)).find("truncated") != std::string::npos);
  std::string damaged = packed;
  damaged[damaged.size() - 6] =
      static_cast<char>(damaged[damaged.size() - 6] ^ 0x55);  // a byte of the checksum
  BOOST_TEST(error(damaged).find("gzip data damaged") != std::string::npos);
  BOOST_TEST(error_of(Exit::bad_input, [&] {
               LineReader((folder / "none").string());
             }).find("no such file") != std::string::npos);
  BOOST_TEST(error_of(Exit::bad_input, [&] { lines_of(folder.path); }).find("is a folder") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(lines_are_returned_before_the_input_ends) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const std::string text = "first\nsec";
  BOOST_REQUIRE(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  const auto reader = std::make_unique<LineReader>("/dev/fd/" + std::to_string(ends[0]));
  std::string line;
  BOOST_TEST(reader->next(line));  // a reader that waits for a full buffer would block
  BOOST_TEST(line == "first");
  BOOST_REQUIRE(write(ends[1], "ond\n", 4) == 4);
  BOOST_TEST(reader->next(line));
  BOOST_TEST(line == "second");
  close(ends[1]);
  BOOST_TEST(!reader->next(line));
  close(ends[0]);
}

// ---- writing --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(failed_output_creates_no_file_and_keeps_an_existing_one) {
  const TempFolder folder;
  const std::string path = (folder / "out").string();
  const auto half = [](const Sink& sink) {
    sink("half");
    throw Error(Exit::bad_input, "stop");
  };
  error_of(Exit::bad_input, [&] { write_output(path, half); });
  BOOST_TEST(folder.entries() == 0);
  write_output(path, [](const Sink& sink) { sink("old"); });
  error_of(Exit::bad_input, [&] { write_output(path, half); });
  BOOST_TEST(get(path) == "old");
  error_of(Exit::io, [&] { write_output((folder / "no" / "out").string(), half); });
}

BOOST_AUTO_TEST_CASE(output_to_a_device_does_not_replace_it) {
  write_output("/dev/null", [](const Sink& sink) { sink("gone"); });
  struct stat about {};
  BOOST_TEST(stat("/dev/null", &about) == 0);
  BOOST_TEST(S_ISCHR(about.st_mode));
}

BOOST_AUTO_TEST_SUITE_END()
