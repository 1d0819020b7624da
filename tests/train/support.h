#pragma once
/// Helpers for tests of files: a temporary folder, and checks of errors and their messages.
#include <stdlib.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "autograd/base/error.h"

namespace heed::test {

/// The parent of temporary folders: in memory if possible, because the tested code calls fsync
/// often.
inline std::filesystem::path scratch() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

/// A new empty folder. The destructor removes it with its contents.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (scratch() / "heed-train-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  /// The number of files and subfolders in the folder, including hidden ones.
  std::int64_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path), {});
  }

  std::filesystem::path path;
};

inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string get(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The message of the Error that `action` throws. Checks that it throws an Error with this code.
template <class Action>
std::string error_of(Exit code, Action action) {
  try {
    action();
  } catch (const Error& error) {
    BOOST_TEST(static_cast<int>(error.code) == static_cast<int>(code), error.what());
    return error.what();
  }
  BOOST_TEST(false, "no error was thrown");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace heed::test

/// Checks that the action throws an Error with this code and a message that contains this text.
#define HEED_CHECK_ERROR(code, part, action)                                   \
  do {                                                                         \
    const std::string message_ = heed::test::error_of(code, [&] { action; });  \
    BOOST_TEST(heed::test::contains(message_, part), "message: " << message_); \
  } while (false)
