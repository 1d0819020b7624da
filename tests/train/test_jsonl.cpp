#include "train/run/jsonl.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "autograd/io/formats/json_text.h"
#include "tests/full_disk.h"
#include "tests/train/support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(json_lines)

BOOST_AUTO_TEST_CASE(invalid_json_is_refused_with_byte_position) {
  BOOST_TEST(parse_json(R"({"a": [1, {"b": null}]})", "x")["a"][0] == 1);
  BOOST_TEST(parse_json(R"([{"a": 1}, {"a": 2}])", "x").size() ==
             2);  // equal keys in different objects are valid
  HEED_CHECK_ERROR(Exit::bad_input, "state.json: byte 2: not valid JSON",
                   parse_json("{]", "state.json"));
  HEED_CHECK_ERROR(Exit::bad_input, "not valid JSON", parse_json("", "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "not valid JSON", parse_json("{} {}", "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "not valid JSON", parse_json("\"\xff\"", "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "byte 3: not valid JSON: a NUL byte",
                   parse_json(std::string("{}\0]", 4), "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "x: a number is out of range", parse_json("[1e400]", "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "x: duplicate key \"a\"",
                   parse_json(R"({"b": {"a": 1, "c": {"a": 2}, "a": 3}})", "x"));
  BOOST_CHECK_NO_THROW(parse_json(std::string(32, '[') + std::string(32, ']'), "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "nested more than 1 levels", parse_json("[[]]", "x", 1));
  HEED_CHECK_ERROR(Exit::bad_input, "nested more than 32 levels",
                   parse_json(std::string(33, '[') + std::string(33, ']'), "x"));
  HEED_CHECK_ERROR(Exit::bad_input, "nested more than 32 levels",
                   parse_json(std::string(1'000'000, '['), "x"));
}

BOOST_AUTO_TEST_CASE(writer_appends_one_record_per_line) {
  const TempFolder folder;
  {
    JsonlWriter writer(folder / "m.jsonl");
    writer.append({{"step", 1}, {"text", "two\nlines"}});
  }
  JsonlWriter writer(folder / "m.jsonl");  // a second writer appends
  writer.append({{"step", 2}});
  writer.sync();
  BOOST_TEST(get(folder / "m.jsonl") == "{\"step\":1,\"text\":\"two\\nlines\"}\n{\"step\":2}\n");
}

BOOST_AUTO_TEST_CASE(full_disk_is_an_io_error) {
  const TempFolder folder;
  JsonlWriter writer(folder / "m.jsonl");
  const FullDisk disk;
  HEED_CHECK_ERROR(Exit::io, "m.jsonl: File too large", writer.append({{"step", 1}}));
}

BOOST_AUTO_TEST_CASE(repair_truncates_before_the_first_broken_line) {
  const TempFolder folder;
  const auto repaired = [&](const std::string& text) {
    put(folder / "m.jsonl", text);
    repair_jsonl(folder / "m.jsonl");
    return get(folder / "m.jsonl");
  };
  const std::string good = "{\"step\":1}\n{\"step\":2}\n";
  BOOST_TEST(repaired(good) == good);
  BOOST_TEST(repaired("") == "");
  BOOST_TEST(repaired(good + "{\"step\":3") == good);           // a process killed while writing
  BOOST_TEST(repaired(good + "{\"step\":3}") == good);          // only the line ending is missing
  BOOST_TEST(repaired(good + std::string(100, '\0')) == good);  // a power cut
  BOOST_TEST(repaired(good + std::string(9, '\0') + "\n" + good) == good);
  BOOST_TEST(repaired(good + "17\n") == good);  // valid JSON, but not a record
  BOOST_TEST(repaired("x") == "");
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    BOOST_TEST(repaired(good.substr(0, cut)) == (cut < 11 ? "" : good.substr(0, 11)));
}

BOOST_AUTO_TEST_CASE(repair_copies_a_file_with_a_damaged_line) {
  const TempFolder folder;
  const std::string text = "{\"step\":1}\n{\"st?p\"\n{\"step\":3}\n";
  put(folder / "m.jsonl", text);
  BOOST_TEST(repair_jsonl(folder / "m.jsonl") == 2);
  BOOST_TEST(get(folder / "m.jsonl") == "{\"step\":1}\n");
  BOOST_TEST(get(folder / "m.jsonl.damaged") == text);
  // No copy is made if only the last line is broken or if the run will write the lines again.
  put(folder / "n.jsonl", "{\"step\":1}\nx\n");
  BOOST_TEST(repair_jsonl(folder / "n.jsonl") == 0);
  put(folder / "n.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  const auto first = [](const nlohmann::json& record) { return record.at("step") < 2; };
  BOOST_TEST(repair_jsonl(folder / "n.jsonl", first) == 0);
  BOOST_TEST(!std::filesystem::exists(folder / "n.jsonl.damaged"));
}

BOOST_AUTO_TEST_CASE(repair_removes_records_that_will_be_written_again) {
  const TempFolder folder;
  put(folder / "m.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
  // `keep` throws for a record without a step.
  const auto keep = [](const nlohmann::json& record) { return record.at("step") <= 2; };
  BOOST_TEST(repair_jsonl(folder / "m.jsonl", keep) == 0);
  BOOST_TEST(get(folder / "m.jsonl") == "{\"step\":1}\n{\"step\":2}\n");
  put(folder / "m.jsonl", "{\"step\":1}\n{\"other\":2}\n");
  BOOST_TEST(repair_jsonl(folder / "m.jsonl", keep) == 0);
  BOOST_TEST(get(folder / "m.jsonl") == "{\"step\":1}\n");
}

BOOST_AUTO_TEST_CASE(repair_of_a_missing_file_creates_none) {
  const TempFolder folder;
  BOOST_TEST(repair_jsonl(folder / "none") == 0);
  BOOST_TEST(folder.entries() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
