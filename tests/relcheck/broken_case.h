#pragma once
/// Broken files and the expected error messages.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "tests/relcheck/measures.h"

namespace heed::relcheck {

struct BrokenCase {
  std::string name;
  /// Writes the broken file into an empty folder.
  std::function<void(const std::filesystem::path& folder)> make;
  /// Reads the file; must throw an Error.
  std::function<void(const std::filesystem::path& folder)> read;
  /// Texts that the message must contain. FOLDER is replaced by the folder's path; a final #
  /// matches a digit.
  std::vector<std::string> says;
  /// Writes the same file at an eighth of the size; empty if the growth of the reading time is not
  /// measured.
  std::function<void(const std::filesystem::path& folder)> make_eighth = {};
};

/// Reads every case in a separate process, so that a crash, a hang or a decompression bomb affects
/// only that case. Prints the number of cases refused with the expected code and message, the
/// maximum time relative to the yardstick of processor_time.h, the growth of time with size, and
/// the peak memory. `min_cases` is the minimum number of cases. `timed` adds a limit in milliseconds
/// for an idle machine like that of docs/RELIABILITY.md.
void measure(Measures& measures, const std::string& kind, Exit code,
             const std::vector<BrokenCase>& cases, std::size_t min_cases, bool timed);

/// Reads intact files, which must be accepted; otherwise the refusals would prove nothing.
void measure_sound(Measures& measures, const std::vector<BrokenCase>& cases);

std::vector<BrokenCase> sound_safetensors();
std::vector<BrokenCase> sound_yaml();
std::vector<BrokenCase> sound_models();
std::vector<BrokenCase> sound_vocabularies();
std::vector<BrokenCase> sound_texts();
std::vector<BrokenCase> sound_archives();

std::vector<BrokenCase> broken_safetensors();
std::vector<BrokenCase> broken_yaml_text();    ///< characters, syntax, structure
std::vector<BrokenCase> broken_yaml_values();  ///< keys, numbers, Boolean values
std::vector<BrokenCase> broken_yaml_costly();  ///< meant to exhaust time, memory or the stack
std::vector<BrokenCase> broken_models();       ///< SentencePiece models
std::vector<BrokenCase> broken_vocabularies();
std::vector<BrokenCase> broken_texts();
std::vector<BrokenCase> broken_archives();

}  // namespace heed::relcheck
