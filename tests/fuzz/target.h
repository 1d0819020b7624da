#pragma once
/// Shared by the fuzz targets. A target is a file fuzz_NAME.cpp that defines `target`, which is
/// called by verdict.cpp for libFuzzer, or without libFuzzer for replay.cpp.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/base/error.h"

namespace heed::fuzz {

/// Processes one input: returns if it is accepted, throws Error with a message if it is refused.
/// Everything else is a finding.
void target(std::string_view input);

/// True if target() accepted the input, false if it refused it. Anything else aborts the program.
bool accepts(std::string_view input);

/// Aborts the program with a message if the condition is false.
void require(bool holds, const std::string& what);

/// Uses an accepted input; must not throw an Error.
void must_work(const std::function<void()>& work);

/// The error must have this code and a message with this beginning.
void require_refusal(const Error& error, Exit code, std::string_view beginning);

/// Reads an input from its front; missing bytes are zero.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  std::string_view rest() const { return left_; }
  unsigned char byte();
  /// The bytes up to the next `mark`, which is removed, or the end.
  std::string_view until(std::string_view mark);

 private:
  std::string_view left_;
};

/// A folder for this process, in memory if possible, removed at the end.
const std::filesystem::path& scratch();

/// Writes a file with this name and these bytes into the scratch folder.
std::filesystem::path put(const std::filesystem::path& name, std::string_view bytes);

/// A file's bytes.
std::string get(const std::filesystem::path& path);

}  // namespace heed::fuzz
