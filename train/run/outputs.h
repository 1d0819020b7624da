#pragma once
/// outputs.jsonl: what a model gives for each sample of the data that its run ends with, the test
/// split or else the validation split. A line for each sample:
///   {"source": …, "target": …, "output": …, "probability": …}
#include <optional>
#include <string>
#include <vector>

#include "train/run/run_folder.h"

namespace heed {

struct SampleOutput {
  std::string source, target, output;
  std::optional<double> probability;  ///< of the output, if it is a label
};

/// Replaces the file; without outputs there is none.
void write_outputs(const RunFolder& run, const std::vector<SampleOutput>& outputs);
/// Empty if the file is missing. Throws Error(bad_input), naming the line, if it is damaged.
std::vector<SampleOutput> read_outputs(const RunFolder& run);

}  // namespace heed
