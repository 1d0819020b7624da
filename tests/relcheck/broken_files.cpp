/// Files that are broken in all ways we could think of: each must be refused with the right code,
/// soon, and with a message that names the file and the place.
#include <iterator>

#include "tests/relcheck/broken_case.h"

using namespace heed;
using namespace heed::relcheck;

namespace {

std::vector<BrokenCase> together(std::vector<std::vector<BrokenCase>> kinds) {
  std::vector<BrokenCase> all;
  for (std::vector<BrokenCase>& cases : kinds)
    all.insert(all.end(), std::make_move_iterator(cases.begin()),
               std::make_move_iterator(cases.end()));
  return all;
}

}  // namespace

/// The short and the long form are the same: all cases take seconds.
int main() {
  Measures measures;
  measure_sound(measures, together({sound_safetensors(), sound_yaml(), sound_models(),
                                    sound_vocabularies(), sound_texts(), sound_archives()}));
  measure(measures, "safetensors", Exit::bad_input, broken_safetensors(), 60);
  measure(measures, "YAML", Exit::usage,
          together({broken_yaml_text(), broken_yaml_values(), broken_yaml_costly()}), 60);
  measure(measures, "tokenizer", Exit::bad_input,
          together({broken_models(), broken_vocabularies()}), 40);
  measure(measures, "data", Exit::bad_input, together({broken_texts(), broken_archives()}), 40);
  return measures.exit_status();
}
