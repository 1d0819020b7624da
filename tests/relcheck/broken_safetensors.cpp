#include <cstring>
#include <utility>

#include "autograd/io/formats/safetensors.h"
#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {
namespace {

const std::string kName = "m.safetensors";
const std::string kTooLong = fmt::format("at most {}", safetensors_max_header);

/// A header length in the file's format, followed by `rest`.
std::string framed(std::uint64_t length, const std::string& rest) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + rest;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

struct Cases {
  std::vector<BrokenCase> all;

  void file(const std::string& name, const std::string& bytes, const std::string& says) {
    put_in(
        name, [bytes](const auto& folder) { put(folder / kName, bytes); }, says);
  }
  void put_in(const std::string& name, std::function<void(const std::filesystem::path&)> make,
              const std::string& says) {
    all.push_back({name,
                   std::move(make),
                   [](const auto& folder) { SafetensorsFile::read(folder / kName); },
                   {"FOLDER/" + kName, says}});
  }
  /// Adds a file with the header inside(size), and one with the header inside(size / 8).
  void sized(const std::string& name, std::size_t size,
             const std::function<std::string(std::size_t)>& inside, std::size_t data,
             const std::string& says) {
    header(name, inside(size), data, says);
    const std::string text = "{" + inside(size / 8) + "}";
    all.back().make_eighth = [bytes = framed(text.size(), text + std::string(data, '\7'))](
                                 const auto& folder) { put(folder / kName, bytes); };
  }
  /// Adds a file with this header in braces and `data` bytes of data.
  void header(const std::string& name, const std::string& inside, std::size_t data,
              const std::string& says) {
    const std::string text = "{" + inside + "}";
    file(name, framed(text.size(), text + std::string(data, '\7')), says);
  }
};

void frames(Cases& cases) {
  const std::string good = "{" + tensor("a", "U8", "[4]", "[0,4]") + "}";
  cases.file("one byte", "\1", "at least 8 bytes, got 1");
  cases.file("only a length", framed(2, ""), "header of 2 bytes, but only 0");
  cases.file("a length of 2^63", framed(std::uint64_t{1} << 63, good), kTooLong);
  cases.file("a length of 2^63 - 1", framed((std::uint64_t{1} << 63) - 1, good), kTooLong);
  cases.file("a length of 2^64 - 8", framed(~std::uint64_t{7}, good), kTooLong);
  cases.file("a length of 2^32", framed(std::uint64_t{1} << 32, good), kTooLong);
  cases.file("a length one above the maximum", framed(safetensors_max_header + 1, good), kTooLong);
  cases.file("the maximum length in a short file", framed(safetensors_max_header, good),
             "but only");
  cases.file("a length one too small", framed(good.size() - 1, good + "\7\7\7\7"),
             "not valid JSON");
  cases.file("a length one too large", framed(good.size() + 1, good + "\7\7\7\7"),
             "not valid JSON");
  cases.file("a big-endian length", std::string(7, '\0') + "\1" + good, kTooLong);
  cases.file("a length as text", "00000064" + good, kTooLong);
  cases.file("line endings converted to \\r\\n",
             framed(good.size(), "{\r\n" + good.substr(1) + "\7\7\7\7"), "not valid JSON");
  cases.file("a byte-order mark before the header",
             framed(good.size() + 3, "\xEF\xBB\xBF" + good + "\7\7\7\7"), "begin with {");
  cases.file("a header in UTF-16", framed(4, std::string("{\0}\0", 4)), "byte 2: not valid JSON");
  cases.file("a header of spaces", framed(64, std::string(64, ' ')), "begin with {");
  cases.file("a header of NULs", framed(64, std::string(64, '\0')), "begin with {");
  cases.file("padding of NULs", framed(8, std::string("{}\0\0\0\0\0\0", 8)),
             "byte 3: not valid JSON");
  cases.file("a pickle", "\x80\x02}q" + std::string(1, '\0') + "X" + std::string(40, 'm'),
             "(is it a safetensors file?)");
  cases.file("a numpy file", "\x93NUMPY\x01" + std::string(1, '\0') + "v" + std::string(40, ' '),
             "header of ");
  cases.file("a gzip file", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03xxxxxxx", 17), "but only 9");
  cases.file("an HTML error page", "<!DOCTYPE html><html>404</html>",
             "(is it a safetensors file?)");
  cases.file("a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\noid",
             "(is it a safetensors file?)");
}

void places(Cases& cases) {
  namespace fs = std::filesystem;
  cases.put_in(
      "no file", [](const auto&) {}, "no such file");
  cases.put_in(
      "an empty file", [](const auto& folder) { put(folder / kName, ""); },
      "at least 8 bytes, got 0");
  cases.put_in(
      "a folder", [](const auto& folder) { fs::create_directory(folder / kName); },
      "not a regular file");
  cases.put_in(
      "a pipe", [](const auto& folder) { make_pipe(folder / kName); }, "not a regular file");
  cases.put_in(
      "an endless device",
      [](const auto& folder) { fs::create_symlink("/dev/zero", folder / kName); },
      "not a regular file");
  cases.put_in(
      "a link to itself", [](const auto& folder) { fs::create_symlink(kName, folder / kName); },
      "Too many levels");
  cases.put_in(
      "a dangling link", [](const auto& folder) { fs::create_symlink("none", folder / kName); },
      "no such file");
  cases.put_in(
      "a sparse file of a terabyte",
      [](const auto& folder) {
        put(folder / kName, framed(2, "{}"));
        fs::resize_file(folder / kName, std::uintmax_t{1} << 40);
      },
      "bytes after the last tensor");
  cases.put_in(
      "a sparse file of zeros",
      [](const auto& folder) {
        put(folder / kName, "");
        fs::resize_file(folder / kName, 1 << 24);
      },
      "begin with {");
}

void json(Cases& cases) {
  const std::string a = tensor("a", "U8", "[4]", "[0,4]");
  cases.header("a trailing comma", a + ",", 4, "not valid JSON");
  cases.header("a comment", a + "/* */", 4, "not valid JSON");
  cases.header("single quotes", "'a':{}", 4, "byte 2: not valid JSON");
  cases.header("a key without quotes", "a:{}", 4, "byte 2: not valid JSON");
  cases.header("NaN as an extent", tensor("a", "U8", "[NaN]", "[0,4]"), 4, "not valid JSON");
  cases.header("Infinity as an offset", tensor("a", "U8", "[4]", "[0,Infinity]"), 4,
               "not valid JSON");
  cases.header("an octal extent", tensor("a", "U8", "[04]", "[0,4]"), 4, "not valid JSON");
  cases.header("a hexadecimal extent", tensor("a", "U8", "[0x4]", "[0,4]"), 4, "not valid JSON");
  cases.header("an extent with a plus sign", tensor("a", "U8", "[+4]", "[0,4]"), 4,
               "not valid JSON");
  cases.header("an extent of 4e0", tensor("a", "U8", "[4e0]", "[0,4]"), 4,
               "\"a\": shape must be a list of at most 8 whole numbers");
  cases.header("an extent of 1e400", tensor("a", "U8", "[1e400]", "[0,4]"), 4,
               "a number is out of range");
  cases.header("an extent of 4.0000000000000001",
               tensor("a", "U8", "[4.0000000000000001]", "[0,4]"), 4, "whole numbers from 0");
  cases.header("an extent of -0", tensor("a", "U8", "[-0]", "[0,0]"), 0,
               "\"a\": shape must be a list of at most 8 whole numbers");
  cases.header("a lone surrogate in a name", R"("\ud800":{})", 0, "not valid JSON");
  cases.header("an overlong encoding in a name", "\"\xC0\x80\":{}", 0, "not valid JSON");
  cases.header("a newline in a name", "\"a\nb\":{}", 0, "not valid JSON");
  cases.header("a truncated name", "\"a", 0, "not valid JSON");
  cases.header("an invalid escape", R"("\x41":{})", 0, "not valid JSON");
  cases.header("two values", a + "},{" + a, 4, "not valid JSON");
  cases.sized(
      "200,000 nested objects", 200'000, [](std::size_t size) { return repeated("\"a\":{", size); },
      0, "nested more than 3 levels");
  cases.sized(
      "a million brackets in a shape", 1'000'000,
      [](std::size_t size) { return "\"a\":{\"shape\":" + std::string(size, '['); }, 0,
      "nested more than 3 levels");
  cases.header("metadata in metadata", R"("__metadata__":{"a":{"b":"c"}})", 0,
               "__metadata__ must contain only strings; the value of \"a\" is not a string");
  cases.header("metadata that is a list", R"("__metadata__":["a"])", 0,
               "__metadata__ must be an object");
  cases.header("metadata that is null", R"("__metadata__":null)", 0,
               "__metadata__ must be an object");
  cases.header("metadata with a Boolean value", R"("__metadata__":{"k":true})", 0,
               "must contain only strings; the value of \"k\" is not a string");
  cases.header("a duplicate escaped key in metadata", R"("__metadata__":{"k":"1","\u006b":"2"})", 0,
               "duplicate key \"k\"");
}

void tensors(Cases& cases) {
  const auto entry = [&](const std::string& name, const std::string& dtype,
                         const std::string& shape, const std::string& offsets, std::size_t data,
                         const std::string& says) {
    cases.header(name, tensor("w", dtype, shape, offsets), data, says);
  };
  entry("a dtype in lower case", "f32", "[1]", "[0,4]", 4, "\"w\": unknown dtype \"f32\"");
  entry("a PyTorch name of a dtype", "torch.float32", "[1]", "[0,4]", 4, "\"w\": unknown dtype");
  entry("no dtype", "", "[1]", "[0,4]", 4, "\"w\": unknown dtype \"\"");
  entry("a dtype from a newer version", "F8_E4M3", "[4]", "[0,4]", 4, "unknown dtype \"F8_E4M3\"");
  entry("a dtype with a NUL", "F32\\u0000", "[1]", "[0,4]", 4, "\"w\": unknown dtype");
  entry("a shape that is a number", "F32", "1", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("a shape that is null", "F32", "null", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("a shape that is a string", "F32", "\"[1]\"", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("rank 9 with a zero", "U8", "[0,1,1,1,1,1,1,1,1]", "[0,0]", 0, "a list of at most 8 whole");
  cases.sized(
      "rank 100,000", 100'000,
      [](std::size_t rank) {
        return tensor("w", "U8", "[1" + repeated(",1", rank - 1) + "]", "[0,1]");
      },
      1, "\"w\": shape must be a list of at most 8 whole numbers");
  entry("a negative extent", "U8", "[-1,-4]", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("an extent of -2^63", "U8", "[-9223372036854775808]", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("an extent of 2^64", "U8", "[18446744073709551616]", "[0,4]", 4,
        "\"w\": shape must be a list of at most 8 whole numbers");
  entry("a product of 2^64 that wraps to 0", "U8", "[65536,65536,65536,65536]", "[0,0]", 0,
        "does not fit in 64 bits");
  entry("a product that wraps to 4", "U8", "[4,4611686018427387905]", "[0,4]", 4,
        "does not fit in 64 bits");
  entry("a size in bytes that wraps to 8", "F64", "[2305843009213693953]", "[0,8]", 8,
        "does not fit in 64 bits");
  entry("a size of 2^63 bytes", "F32", "[2305843009213693952]", "[0,0]", 0,
        "does not fit in 64 bits");
  entry("a zero after an overflow", "U8", "[9223372036854775807,3,0]", "[0,0]", 0,
        "does not fit in 64 bits");
  entry("a terabyte", "F32", "[274877906944]", "[0,1099511627776]", 8,
        "\"w\" ends at byte 1099511627776 of the data, which end at byte 8");
  entry("an offset below zero", "U8", "[4]", "[-4,0]", 4,
        "\"w\": data_offsets must be a list of 2 whole numbers");
  entry("an offset of 2^64", "U8", "[4]", "[18446744073709551616,4]", 4,
        "\"w\": data_offsets must be a list of 2 whole numbers");
  entry("an offset with a fraction", "U8", "[4]", "[0.5,4.5]", 4,
        "\"w\": data_offsets must be a list of 2 whole numbers");
  entry("no offsets", "U8", "[4]", "[]", 4,
        "\"w\": data_offsets must be a list of 2 whole numbers");
  entry("an offset in brackets", "U8", "[4]", "[[0],4]", 4, "nested more than 3 levels");
  entry("an offset in quotes", "U8", "[4]", "[\"0\",4]", 4,
        "\"w\": data_offsets must be a list of 2 whole numbers");
  entry("one element too few", "F32", "[2,3]", "[0,20]", 20, "has 24 bytes, but data_offsets");
  entry("a dtype half as wide", "F16", "[2,3]", "[0,24]", 24, "has 12 bytes, but data_offsets");
  entry("data one byte too short", "U8", "[4]", "[0,4]", 3, "\"w\" ends at byte 4 of the data");
  entry("data one byte too long", "U8", "[4]", "[0,4]", 5, "extra bytes after the last tensor: 1");
  entry("offsets that do not begin at 0", "U8", "[4]", "[4,8]", 8, "(a gap)");
  entry("1,024 bytes after an empty tensor", "U8", "[0]", "[0,0]", 1024,
        "extra bytes after the last tensor: 1024");
}

void several_tensors(Cases& cases) {
  const std::string a = tensor("a", "U8", "[4]", "[0,4]");
  cases.header("a duplicate name, once escaped", a + "," + tensor("\\u0061", "U8", "[4]", "[4,8]"),
               8, "duplicate key \"a\"");
  cases.header("one tensor inside another", a + "," + tensor("b", "U8", "[1]", "[1,2]"), 4,
               "\"b\" begins at byte 1 of the data instead of 4 (an overlap)");
  cases.header(
      "a tensor that covers all others",
      a + "," + tensor("b", "U8", "[4]", "[4,8]") + "," + tensor("c", "U8", "[8]", "[0,8]"), 8,
      "(an overlap)");
  cases.header("the second of three tensors missing", a + "," + tensor("c", "U8", "[4]", "[8,12]"),
               12, "\"c\" begins at byte 8 of the data instead of 4 (a gap)");
  cases.header("an empty tensor inside another", tensor("z", "U8", "[0]", "[2,2]") + "," + a, 4,
               "\"z\" begins at byte 2 of the data instead of 4 (an overlap)");
  cases.sized(
      "5,000 tensors with the same bytes", 5000,
      [&](std::size_t count) {
        std::string many = a;
        for (std::size_t i = 1; i < count; ++i)
          many += "," + tensor(fmt::format("t{}", i), "U8", "[4]", "[0,4]");
        return many;
      },
      4, "(an overlap)");
  constexpr std::size_t max_size = safetensors_max_header - 200;
  cases.sized(
      "a header of the maximum size, with an error at its end", max_size,
      [](std::size_t size) {
        std::string full;
        for (int i = 0; full.size() < size; ++i)
          full += tensor(fmt::format("t{}", i), "U8", "[0]", "[0,0]") + ",";
        return full + tensor("z", "U8", "[-1]", "[0,0]");
      },
      0, "header: ");
  cases.sized(
      "a header of the maximum size, full of metadata keys", max_size,
      [](std::size_t size) {
        std::string keys;
        for (int i = 0; keys.size() < size; ++i) keys += fmt::format("\"{}\":\"\",", i);
        return "\"__metadata__\":{" + keys + "}";
      },
      0, "header: ");
  cases.sized(
      "a header of the maximum size, with an unterminated string", max_size,
      [](std::size_t size) { return "\"__metadata__\":{\"k\":\"" + std::string(size, 'x') + "}"; },
      0, "not valid JSON");
  cases.header("a NUL followed by other bytes",
               tensor("a", "U8", "[4]", "[0,4]") + "}" + std::string(1, '\0') + "[{,", 4,
               "not valid JSON");
  cases.header("an extra key", R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":0})", 4,
               "\"a\": unknown key \"x\"");
  cases.header("a key with capitals", R"("a":{"DType":"U8","shape":[4],"data_offsets":[0,4]})", 4,
               "\"a\": unknown key \"DType\"");
  cases.header("no shape", R"("a":{"dtype":"U8","data_offsets":[0,4]})", 4,
               "shape or data_offsets");
  cases.header("offsets twice", R"("a":{"data_offsets":[0,4],"data_offsets":[0,4]})", 4,
               "duplicate key \"data_offsets\"");
}

}  // namespace

std::vector<BrokenCase> sound_safetensors() {
  Cases cases;
  cases.header("no tensors", "", 0, "");
  cases.header("two tensors in reverse order",
               tensor("b", "F16", "[2]", "[4,8]") + "," + tensor("a", "U8", "[1,4]", "[0,4]"), 8,
               "");
  cases.header("rank 8 and an extent of 0", tensor("a", "F64", "[1,1,1,1,0,1,1,1]", "[0,0]"), 0,
               "");
  cases.header("metadata", R"("__metadata__":{"format":"pt"},)" + tensor("a", "U8", "[]", "[0,1]"),
               1, "");
  return cases.all;
}

std::vector<BrokenCase> broken_safetensors() {
  Cases cases;
  frames(cases);
  places(cases);
  json(cases);
  tensors(cases);
  several_tensors(cases);
  return cases.all;
}

}  // namespace heed::relcheck
