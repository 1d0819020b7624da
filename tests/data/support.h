#pragma once
/// Support for the tests of data/.
#include <stdlib.h>
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/base/random.h"

namespace heed::testing {

/// A temporary folder.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "heed-data-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// write and write_gz return the path of the written file.
  std::string write(std::string_view name, std::string_view content) const {
    const auto file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }
  std::string write_gz(std::string_view name, std::string_view content) const {
    const auto file = path_ / name;
    const gzFile out = gzopen(file.c_str(), "wb");
    BOOST_REQUIRE(out != nullptr);
    if (!content.empty()) {
      BOOST_REQUIRE(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) > 0);
    }
    BOOST_REQUIRE(gzclose(out) == Z_OK);
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs `action`, which must throw an Error with this code and a message that contains all parts.
template <class Action>
void expect_error(Exit code, std::initializer_list<std::string_view> parts, Action action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    BOOST_TEST(static_cast<int>(error.code) == static_cast<int>(code), message);
    for (const auto part : parts) {
      BOOST_TEST(message.find(part) != std::string::npos,
                 "\"" << message << "\" does not contain \"" << part << "\"");
    }
    return;
  }
  BOOST_ERROR("no error was thrown");
}

inline std::vector<std::string> split_at(const std::string& line, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Sentences of random words from a short list, so that words repeat; for learning vocabularies.
inline std::vector<std::string> sentences(std::size_t count, std::uint64_t seed) {
  static const std::vector<std::string> words = {
      "the",    "a",      "house",  "houses", "river",   "rivers", "running", "walking", "walked",
      "Straße", "Bäume",  "grün",   "garden", "gardens", "under",  "over",    "little",  "great",
      "old",    "new",    "stone",  "bridge", "bridges", "mill",   "mills",   "and",     "then",
      "came",   "coming", "singer", "songs",  "singing", "été",    "naïve",   "日本",    "42"};
  Random random({.seed = seed, .stream = Stream::check, .index = 99, .part = 0});
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) {
    std::string line;
    for (std::uint32_t n = 3 + random.below(10); n > 0; --n) {
      line += words[random.below(static_cast<std::uint32_t>(words.size()))];
      line += n > 1 ? " " : ".";
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace heed::testing
