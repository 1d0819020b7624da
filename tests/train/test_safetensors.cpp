#include "autograd/io/formats/safetensors.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "tests/train/support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(safetensors)

namespace {

template <class T>
TensorView view(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
                const std::vector<T>& values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

/// A file with this header, preceded by its length, and `data_bytes` bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, 'd');
}

/// The header entry of one tensor.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

void check_refused(const std::string& header, std::size_t data_bytes, const std::string& part) {
  HEED_CHECK_ERROR(Exit::bad_input, "m.safetensors: ",
                   SafetensorsFile::parse(file_with(header, data_bytes), "m.safetensors"));
  HEED_CHECK_ERROR(Exit::bad_input, part,
                   SafetensorsFile::parse(file_with(header, data_bytes), "m.safetensors"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_read_equal_tensors_written) {
  const TempFolder folder;
  const std::vector<float> weight = {1.5f, -2.0f, 3.25f, 0.0f, -0.0f, 1e-40f};
  const std::vector<double> moment = {1.0 / 3.0, 2e300};
  const std::vector<std::int64_t> step = {-7};
  const std::vector<std::uint8_t> flags = {1, 2, 255};
  const std::vector<TensorView> tensors = {
      view("flags", DType::u8, {3}, flags), view("w", DType::f32, {2, 3}, weight),
      view("ümlaut \"quoted\"", DType::f64, {2, 1, 1}, moment), view("step", DType::i64, {}, step),
      view("nothing", DType::f32, {0, 5}, std::vector<float>{})};
  write_safetensors(folder / "m", tensors, {{"format", "pt"}, {"made by", "heed"}});

  const SafetensorsFile file = SafetensorsFile::read(folder / "m");
  BOOST_TEST(file.tensors().size() == tensors.size());
  BOOST_TEST((file.metadata() == TensorMetadata{{"format", "pt"}, {"made by", "heed"}}));
  BOOST_TEST(file.find("none") == nullptr);
  for (const TensorView& expected : tensors) {
    const TensorView* found = file.find(expected.name);
    BOOST_REQUIRE(found != nullptr);
    BOOST_TEST((found->dtype == expected.dtype));
    BOOST_TEST((found->shape == expected.shape));
    BOOST_TEST(std::equal(found->bytes.begin(), found->bytes.end(), expected.bytes.begin(),
                          expected.bytes.end()));
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(found->bytes.data()) % size_of(found->dtype) == 0);
  }
  BOOST_TEST(file.find("ümlaut \"quoted\"")->values<double>()[1] == 2e300);
  BOOST_TEST(file.find("step")->size() == 1);
  BOOST_TEST(file.find("w")->description() == "F32 [2, 3]");
}

BOOST_AUTO_TEST_CASE(moved_safetensors_file_keeps_its_tensors) {
  const std::vector<float> values = {1.0f, 2.0f};
  const TempFolder folder;
  write_safetensors(folder / "m", std::vector{view("w", DType::f32, {2}, values)});
  SafetensorsFile first = SafetensorsFile::read(folder / "m");
  const SafetensorsFile second = std::move(first);
  BOOST_TEST(second.find("w")->values<float>()[1] == 2.0f);
}

// As in the README of the format, a file consists of the length of the header, the header padded
// with spaces, and the data.
BOOST_AUTO_TEST_CASE(layout_equals_that_of_the_format_description) {
  const TempFolder folder;
  const std::vector<float> one = {1.0f};
  const std::vector<double> two = {2.0};
  write_safetensors(folder / "m",
                    std::vector{view("a", DType::f32, {1}, one), view("b", DType::f64, {1}, two)});
  const std::string bytes = get(folder / "m");
  const std::string header = R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  BOOST_REQUIRE(bytes.size() >= 8);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  BOOST_TEST(length % 8 == 0);
  BOOST_TEST(bytes.size() == 8 + length + 12);
  BOOST_TEST(bytes.substr(8, header.size()) == header);
  BOOST_TEST(bytes.substr(8 + header.size(), length - header.size()) ==
             std::string(length - header.size(), ' '));
  const auto bytes_of = [](const auto& values) {
    const auto all = std::as_bytes(std::span(values));
    return std::string(reinterpret_cast<const char*>(all.data()), all.size());
  };
  BOOST_TEST(bytes.substr(8 + length, 8) == bytes_of(two));
  BOOST_TEST(bytes.substr(16 + length, 4) == bytes_of(one));
}

BOOST_AUTO_TEST_CASE(order_of_the_tensors_does_not_change_the_file) {
  const TempFolder folder;
  const std::vector<float> values = {1.0f};
  const TensorView a = view("a", DType::f32, {1}, values), b = view("b", DType::f32, {1}, values);
  write_safetensors(folder / "1", std::vector{a, b});
  write_safetensors(folder / "2", std::vector{b, a});
  BOOST_TEST(get(folder / "1") == get(folder / "2"));
}

BOOST_AUTO_TEST_CASE(writing_of_invalid_tensors_is_refused) {
  const TempFolder folder;
  const std::vector<float> values = {1.0f, 2.0f};
  const TensorView good = view("w", DType::f32, {2}, values);
  HEED_CHECK_ERROR(Exit::failed, "duplicate or reserved tensor name w",
                   write_safetensors(folder / "m", std::vector{good, good}));
  HEED_CHECK_ERROR(
      Exit::failed, "8 bytes do not match F32 [3]",
      write_safetensors(folder / "m", std::vector{view("w", DType::f32, {3}, values)}));
  HEED_CHECK_ERROR(
      Exit::failed, "__metadata__",
      write_safetensors(folder / "m", std::vector{view("__metadata__", DType::f32, {2}, values)}));
  BOOST_TEST(folder.entries() == 0);
}

BOOST_AUTO_TEST_CASE(size_of_a_dtype_equals_the_bits_in_its_name) {
  constexpr auto names = names_of(DType{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t digits = names[i].find_first_of("0123456789");
    const int bits =
        digits == std::string_view::npos ? 8 : std::stoi(std::string(names[i].substr(digits)));
    BOOST_TEST(size_of(static_cast<DType>(i)) == bits / 8u, names[i]);
  }
  BOOST_TEST(name_of(DType::boolean) == "BOOL");
  BOOST_TEST(name_of(DType::bf16) == "BF16");
  BOOST_TEST(name_of(DType::f64) == "F64");
}

BOOST_AUTO_TEST_CASE(files_of_other_programs_are_accepted) {
  // Headers with padding, without tensors, with the metadata last, with zero-sized tensors, and
  // with a length that is not a multiple of 8.
  const auto none = SafetensorsFile::parse(file_with("{}      ", 0), "x");
  BOOST_TEST(none.tensors().empty());
  BOOST_CHECK_NO_THROW(SafetensorsFile::parse(file_with("{\"__metadata__\":{}}", 0), "x"));
  const auto file = SafetensorsFile::parse(
      file_with("{" + entry("b", "F32", "[1]", "[4,8]") + "," +
                    entry("e", "I64", "[3,0]", "[8,8]") + "," +
                    entry("a", "I32", "[1,1]", "[0,4]") + ",\"__metadata__\":{\"k\":\"v\"}} ",
                8),
      "x");
  BOOST_TEST(file.tensors().size() == 3);
  BOOST_TEST(file.tensors()[0].name == "a");
  BOOST_TEST(file.find("e")->bytes.empty());
  BOOST_TEST(file.metadata().at("k") == "v");
  BOOST_CHECK_NO_THROW(SafetensorsFile::parse(
      file_with("{" + entry("a", "U8", "[1,1,1,1,1,1,1,2]", "[0,2]") + "}", 2), "x"));
}

BOOST_AUTO_TEST_CASE(invalid_length_or_start_of_the_header_is_refused) {
  const auto refused = [](const std::string& bytes, const std::string& part) {
    HEED_CHECK_ERROR(Exit::bad_input, part, SafetensorsFile::parse(bytes, "m"));
  };
  refused("", "m: expected a safetensors file of at least 8 bytes, got 0");
  refused("1234567", "at least 8 bytes, got 7");
  refused(std::string(8, '\0'), "must begin with {");
  refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "at most 4194304");
  refused(std::string("\x01\x00\x00\x01\x00\x00\x00\x00{", 9), "at most 4194304");
  refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), "header of 3 bytes, but only 2 follow");
  refused("PK\x03\x04 a zip file, surely", "at most");
}

BOOST_AUTO_TEST_CASE(invalid_header_is_refused) {
  check_refused("[]", 0, "must begin with {");
  check_refused(" {}", 0, "must begin with {");
  check_refused("{", 0, "not valid JSON");
  check_refused("{}{}", 0, "byte 3: not valid JSON");
  check_refused("{\"a\xff\":{}}", 0, "not valid JSON");
  check_refused("{\"a\":1}", 0, "\"a\": must be an object");
  check_refused("{\"a\":null}", 0, "\"a\": must be an object");
  check_refused("{\"a\":true}", 0, "\"a\": must be an object");
  check_refused("{\"a\":\"text\"}", 0, "\"a\": must be an object");
  check_refused("{\"a\":[1]}", 0, "\"a\": must be an object");
  check_refused("{\"a\":-1}", 0, "\"a\": must be an object");
  check_refused("{\"a\":{}}", 0, "\"a\": dtype, shape or data_offsets is missing");
  check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "is missing");
  check_refused("{\"a\":{\"type\":\"F32\"}}", 0, "\"a\": unknown key \"type\"");
  check_refused("{" + entry("a", "F32\",\"dtype\":\"F32", "[]", "[0,4]") + "}", 4,
                "duplicate key \"dtype\"");
  check_refused("{\"a\":{\"shape\":[1],\"shape\":[1]}}", 0, "duplicate key \"shape\"");
  check_refused("{" + entry("a", "F33", "[]", "[0,1]") + "}", 1, "\"a\": unknown dtype \"F33\"");
  for (const char* dtype : {"32", "{}", "[]", "null"})
    check_refused(
        std::string(R"({"a":{"dtype":)") + dtype + R"(,"shape":[],"data_offsets":[0,1]}})", 1,
        std::string("\"a\": unknown dtype ") + dtype);
  for (const char* wrong :
       {"1", "null", "\"[1]\"", "{}", "[\"1\"]", "[1.0]", "[-1]", "[-0]", "[99999999999999999999]",
        "[9223372036854775808]", "[1,1,1,1,1,1,1,1,1]"})
    check_refused("{" + entry("a", "F32", wrong, "[0,4]") + "}", 4,
                  "\"a\": shape must be a list of at most 8 whole numbers from 0 to 2^63 - 1");
  for (const char* wrong :
       {"1", "[]", "[0]", "[0,4,8]", "[-4,0]", "[0,4.5]", "[\"0\",4]", "[0,18446744073709551615]"})
    check_refused("{" + entry("a", "F32", "[1]", wrong) + "}", 4,
                  "\"a\": data_offsets must be a list of 2 whole numbers");
  check_refused("{\"a\":{\"shape\":[[1]]}}", 0, "nested more than 3 levels");
  check_refused("{" + entry("a", "F32", "[1]", "[4,0]") + "}", 4,
                "data_offsets [4, 0] end before they begin");
  check_refused(
      "{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}", 8,
      "duplicate key \"a\"");
  check_refused("{\"__metadata__\":{\"k\":1}}", 0,
                "__metadata__ must contain only strings; the value of \"k\" is not a string");
  check_refused("{\"__metadata__\":{\"k\":\"a\",\"k\":\"b\"}}", 0, "duplicate key \"k\"");
  check_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate key \"__metadata__\"");
  check_refused("{\"__metadata__\":\"x\"}", 0, "__metadata__ must be an object");
  check_refused("{" + std::string(100'000, '['), 0, "not valid JSON");
  check_refused("{\"a\":" + std::string(100'000, '['), 0, "nested more than 3 levels");
}

BOOST_AUTO_TEST_CASE(more_than_65536_names_are_refused) {
  const auto names = [](std::size_t count, const std::string& value) {
    std::string header;
    for (std::size_t i = 0; i < count; ++i)
      header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + value;
    return header;
  };
  const std::string empty = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  const std::size_t max_names = safetensors_max_names;
  check_refused("{" + names(max_names + 1, empty) + "}", 0, "more than 65536 names");
  check_refused(R"({"__metadata__":{)" + names(max_names + 1, R"("")") + "}}", 0,
                "more than 65536 names");
  const auto file = SafetensorsFile::parse(file_with("{" + names(max_names, empty) + "}", 0), "m");
  BOOST_TEST(file.tensors().size() == max_names);
}

BOOST_AUTO_TEST_CASE(tensor_sizes_that_contradict_the_data_are_refused) {
  check_refused("{" + entry("a", "F32", "[2]", "[0,4]") + "}", 4,
                "\"a\": F32 [2] has 8 bytes, but data_offsets specify 4");
  check_refused("{" + entry("a", "F32", "[]", "[0,0]") + "}", 0, "has 4 bytes");
  check_refused("{" + entry("a", "F32", "[0]", "[0,4]") + "}", 4, "has 0 bytes");
  const std::string huge = "[4294967296,4294967296]";
  check_refused("{" + entry("a", "U8", huge, "[0,0]") + "}", 0, "does not fit in 64 bits");
  check_refused("{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}", 0,
                "fit in 64 bits");
  check_refused("{" + entry("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]") + "}", 5,
                "ends at byte 9223372036854775807 of the data, which end at byte 5");
  check_refused("{" + entry("a", "U8", "[1]", "[9223372036854775807,0]") + "}", 5,
                "data_offsets [9223372036854775807, 0] end before they begin");
  check_refused("{" + entry("a", "U8", "[1]", "[9223372036854775806,9223372036854775807]") + "}", 5,
                "ends at byte 9223372036854775807");
}

BOOST_AUTO_TEST_CASE(names_are_escaped_in_messages) {
  const std::string name = "\\u001b[2J", seen = "\"\\x1b[2J\"";
  check_refused("{" + entry(name, "U8", "[1]", "[0,1]") + "}", 0, seen + " ends at byte 1");
  check_refused("{" + entry(name, "U8", "[1]", "[1,2]") + "}", 2, seen + " begins at byte 1");
  check_refused("{" + entry(name, "F33", "[1]", "[0,1]") + "}", 1, seen + ": unknown dtype");
  check_refused("{\"__metadata__\":{\"" + name + "\":\"\",\"" + name + "\":\"\"}}", 0,
                "duplicate key " + seen);
}

BOOST_AUTO_TEST_CASE(file_larger_than_memory_is_refused) {
  // A view that claims 2^62 bytes: memory is allocated before any byte is read.
  const std::string size = std::to_string(std::uint64_t{1} << 62);
  const std::string bytes =
      file_with("{" + entry("a", "U8", "[" + size + "]", "[0," + size + "]") + "}", 0);
  const std::string_view claimed(bytes.data(), bytes.size() + (std::size_t{1} << 62));
  HEED_CHECK_ERROR(Exit::io, "m: not enough memory for its " + size + " bytes",
                   SafetensorsFile::parse(claimed, "m"));
}

BOOST_AUTO_TEST_CASE(gaps_overlaps_and_wrong_offsets_are_refused) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{" + entry("a", "U8", "[4]", first) + "," + entry("b", "U8", "[4]", second) + "}";
  };
  check_refused(two("[0,4]", "[5,9]"), 9,
                "\"b\" begins at byte 5 of the data instead of 4 (a gap)");
  check_refused(two("[0,4]", "[3,7]"), 7,
                "\"b\" begins at byte 3 of the data instead of 4 (an overlap)");
  check_refused(two("[0,4]", "[0,4]"), 4, "an overlap");
  check_refused(two("[1,5]", "[5,9]"), 9, "\"a\" begins at byte 1 of the data instead of 0");
  check_refused(two("[0,4]", "[4,8]"), 9, "extra bytes after the last tensor: 1");
  check_refused(two("[0,4]", "[4,8]"), 7, "\"b\" ends at byte 8 of the data, which end at byte 7");
  check_refused("{}", 1, "extra bytes after the last tensor: 1");
  check_refused("{" + entry("a", "U8", "[0]", "[3,3]") + "}", 0, "ends at byte 3");
}

BOOST_AUTO_TEST_CASE(elements_are_aligned_for_any_header) {
  std::string bytes = file_with(
      "{" + entry("a", "U8", "[3]", "[0,3]") + "," + entry("b", "F64", "[1]", "[3,11]") + "}", 3);
  const double value = 2.5;
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  const auto file = SafetensorsFile::parse(bytes, "m");
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(file.find("b")->bytes.data()) % 8 == 0);
  BOOST_TEST(file.find("b")->values<double>()[0] == 2.5);
  BOOST_TEST(file.find("a")->bytes.size() == 3);
}

// A truncated file is refused. A file with a flipped bit is either refused or complete but changed,
// which the checksums of a checkpoint detect.
BOOST_AUTO_TEST_CASE(corrupt_file_is_refused_or_complete) {
  const TempFolder folder;
  const std::vector<float> values = {1.0f, 2.0f, 3.0f, 4.0f};
  const std::vector<double> wide = {5.0};
  write_safetensors(
      folder / "m",
      std::vector{view("w", DType::f32, {2, 2}, values), view("d", DType::f64, {1}, wide)},
      {{"k", "v"}});
  const std::string bytes = get(folder / "m");
  std::int64_t accepted = 0;
  const auto attempt = [&](const std::string& changed) {
    try {
      std::size_t total = 0;
      const SafetensorsFile file = SafetensorsFile::parse(changed, "m");
      for (const TensorView& tensor : file.tensors()) {
        BOOST_TEST(tensor.bytes.size() ==
                   static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype));
        total += tensor.bytes.size();
      }
      BOOST_TEST(total == 24);
      ++accepted;
    } catch (const Error& error) {
      BOOST_TEST(static_cast<int>(error.code) == static_cast<int>(Exit::bad_input));
    }
  };
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    attempt(changed);
  }
  BOOST_TEST(accepted >= 24 * 8);  // at least those with a flipped bit in the data
  accepted = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) attempt(bytes.substr(0, length));
  attempt(bytes + "x");
  BOOST_TEST(accepted == 0);

  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 4; ++k) changed[random() % changed.size()] = static_cast<char>(random());
    attempt(changed);
  }
}

BOOST_AUTO_TEST_CASE(read_errors_contain_the_file_name) {
  const TempFolder folder;
  HEED_CHECK_ERROR(Exit::bad_input, (folder / "none").string(),
                   SafetensorsFile::read(folder / "none"));
  put(folder / "m", "not one");
  HEED_CHECK_ERROR(
      Exit::bad_input,
      (folder / "m").string() + ": expected a safetensors file of at least 8 bytes, got 7",
      SafetensorsFile::read(folder / "m"));
}

BOOST_AUTO_TEST_SUITE_END()
