/// Files broken in many ways: each must be refused quickly, with the right exit code, and with a
/// message that names the file and the position.
#include <cstring>
#include <iterator>

#include "tests/relcheck/broken_case.h"

using namespace heed;
using namespace heed::relcheck;

namespace {

std::vector<BrokenCase> joined(std::vector<std::vector<BrokenCase>> kinds) {
  std::vector<BrokenCase> all;
  for (std::vector<BrokenCase>& cases : kinds)
    all.insert(all.end(), std::make_move_iterator(cases.begin()),
               std::make_move_iterator(cases.end()));
  return all;
}

}  // namespace

/// The long form also limits the time in milliseconds, which depends on the machine.
int main(int count, char** arguments) {
  const bool timed = count > 1 && std::strcmp(arguments[1], "--long") == 0;
  Measures measures;
  measure_sound(measures, joined({sound_safetensors(), sound_yaml(), sound_models(),
                                  sound_vocabularies(), sound_texts(), sound_archives()}));
  measure(measures, "safetensors", Exit::bad_input, broken_safetensors(), 60, timed);
  measure(measures, "YAML", Exit::usage,
          joined({broken_yaml_text(), broken_yaml_values(), broken_yaml_costly()}), 60, timed);
  measure(measures, "tokenizer", Exit::bad_input, joined({broken_models(), broken_vocabularies()}),
          40, timed);
  measure(measures, "data", Exit::bad_input, joined({broken_texts(), broken_archives()}), 40,
          timed);
  return measures.exit_status();
}
