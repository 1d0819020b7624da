#pragma once
/// What fuzz targets share. A target is a file fuzz_NAME.cpp that defines `target`; verdict.cpp and
/// libFuzzer, or replay.cpp where there is no libFuzzer, call it.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/base/error.h"

namespace heed::fuzz {

/// Works on one input. Returns where it is accepted; refusing it means to throw Error with a
/// message. Everything else is a finding.
void target(std::string_view input);

/// True where target() accepted the input, false where it refused. Anything else ends the program.
bool accepts(std::string_view input);

/// What must hold, or the program ends, saying what does not.
void require(bool holds, const std::string& what);

/// Works on what was accepted, which may not end in an Error any more.
void must_work(const std::function<void()>& work);

/// Error must have this code and a message that begins like this.
void require_refusal(const Error& error, Exit code, std::string_view beginning);

/// Takes an input apart from its front; what is missing is zeros.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  std::string_view rest() const { return left_; }
  unsigned char byte();
  /// Up to the next `mark` or the end; the mark is taken away.
  std::string_view until(std::string_view mark);

 private:
  std::string_view left_;
};

/// A folder of this process, in memory where there is such a place, removed at the end.
const std::filesystem::path& scratch();

/// A file of this name in the scratch folder, with these bytes.
std::filesystem::path put(const std::filesystem::path& name, std::string_view bytes);

/// A file's bytes.
std::string get(const std::filesystem::path& path);

}  // namespace heed::fuzz
