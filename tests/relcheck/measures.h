#pragma once
/// Helpers for the programs of relcheck: result lines, a scratch folder, files as bytes.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "autograd/base/error.h"
#include "autograd/io/files.h"

namespace heed::relcheck {

/// Prints the lines of measures in the form of harness.py and records whether one failed.
class Measures {
 public:
  void line(const std::string& name, const std::string& value, const std::string& target,
            bool passed) {
    fmt::print("{:<58} {:<22} {:<22} {}\n", name, value, target, passed ? "PASS" : "FAIL");
    std::fflush(stdout);
    failed_ = failed_ || !passed;
  }
  /// Prints "count of total"; passes if count = total > 0.
  void all_of(const std::string& name, std::size_t count, std::size_t total) {
    line(name, fmt::format("{} of {}", count, total), "all", count == total && total > 0);
  }
  /// Prints a detail, for example about a failure; it is not counted.
  static void note(const std::string& text) {
    std::string line = text;
    std::replace(line.begin(), line.end(), '\n', '|');
    fmt::print("#   {}\n", line);
    std::fflush(stdout);
  }
  int exit_status() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

/// An empty scratch folder, in memory if possible; the destructor removes it with its content.
class Scratch {
 public:
  Scratch() {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = ::access(memory.c_str(), W_OK) == 0;
    const auto parent = usable ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "heed-relcheck-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw_io("create", name, errno);
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path / name; }

  std::filesystem::path path;
};

inline void put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) throw_io("write", path, errno);
}

inline std::string get(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A named pipe without a writer: reading it would block forever.
inline void make_pipe(const std::filesystem::path& path) {
  if (::mkfifo(path.c_str(), 0600) != 0) throw_io("create", path, errno);
}

inline std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace heed::relcheck
