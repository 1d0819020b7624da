#pragma once
/// Helpers for the fuzz targets. A target is a file fuzz_NAME.cpp that defines `target`, which
/// verdict.cpp calls for libFuzzer or, without libFuzzer, for replay.cpp.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/base/error.h"

namespace heed::fuzz {

/// Processes one input: returns if it is accepted, throws Error with a message if it is refused.
/// Any other outcome is a finding.
void target(std::string_view input);

/// True if target() accepted the input, false if it refused it. Any other outcome aborts the
/// program.
bool accepts(std::string_view input);

/// Aborts the program with a message if the condition is false.
void require(bool holds, const std::string& what);

/// Runs `work`, which uses an accepted input; an Error aborts the program.
void must_work(const std::function<void()>& work);

/// Aborts the program unless the error has this code and its message begins with `beginning`.
void require_refusal(const Error& error, Exit code, std::string_view beginning);

/// Reads an input from its beginning; missing bytes are zero.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  std::string_view rest() const { return left_; }
  unsigned char byte();
  /// The bytes up to the next `mark`, which is skipped, or up to the end.
  std::string_view until(std::string_view mark);

 private:
  std::string_view left_;
};

/// A temporary folder of this process, in memory if possible.
const std::filesystem::path& scratch();

/// Writes a file with this name and these bytes into the scratch folder; returns its path.
std::filesystem::path put(const std::filesystem::path& name, std::string_view bytes);

/// A file's bytes.
std::string get(const std::filesystem::path& path);

}  // namespace heed::fuzz
