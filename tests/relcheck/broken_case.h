#pragma once
/// Broken files and what must be said about each.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "autograd/base/error.h"
#include "tests/relcheck/measures.h"

namespace heed::relcheck {

struct BrokenCase {
  std::string name;
  /// Puts what is broken into an empty folder.
  std::function<void(const std::filesystem::path& folder)> make;
  /// Reads it, which must throw an Error.
  std::function<void(const std::filesystem::path& folder)> read;
  /// What the message must hold besides the file; the word FOLDER stands for the
  /// folder's path, # at the end for a digit.
  std::vector<std::string> says;
  /// Where it is size that makes reading long: the same of an eighth of the size.
  std::function<void(const std::filesystem::path& folder)> make_eighth = {};
};

/// Reads every case in a process of its own, so that a crash, a hang or a bomb is one case's
/// failure, and prints: how many were refused with this code and these words, the longest time
/// beside the yardstick of processor_time.h, how time grows with size, and the most memory. `least`
/// is how many cases there must be; `timed` adds the limit in milliseconds, for a machine like that
/// of docs/RELIABILITY.md with nothing else to do.
void measure(Measures& measures, const std::string& kind, Exit code,
             const std::vector<BrokenCase>& cases, std::size_t least, bool timed);

/// Files that are as they should be: were they refused, the others would prove nothing.
void measure_sound(Measures& measures, const std::vector<BrokenCase>& cases);

std::vector<BrokenCase> sound_safetensors();
std::vector<BrokenCase> sound_yaml();
std::vector<BrokenCase> sound_models();
std::vector<BrokenCase> sound_vocabularies();
std::vector<BrokenCase> sound_texts();
std::vector<BrokenCase> sound_archives();

std::vector<BrokenCase> broken_safetensors();
std::vector<BrokenCase> broken_yaml_text();    ///< characters, syntax, structure
std::vector<BrokenCase> broken_yaml_values();  ///< keys, numbers, truth values
std::vector<BrokenCase> broken_yaml_costly();  ///< made to exhaust time, memory or the stack
std::vector<BrokenCase> broken_models();       ///< sentencepiece
std::vector<BrokenCase> broken_vocabularies();
std::vector<BrokenCase> broken_texts();
std::vector<BrokenCase> broken_archives();

}  // namespace heed::relcheck
