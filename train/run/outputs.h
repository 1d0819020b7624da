#pragma once
/// outputs.jsonl: the model's outputs for the test split or, if there is none, for the validation
/// split, at the end of a run. Only tasks with one output per sample write it. A line for each
/// sample:
///   {"source": …, "target": …, "output": …, "probability": …}
#include <optional>
#include <string>
#include <vector>

#include "train/run/run_folder.h"

namespace heed {

struct SampleOutput {
  std::string source, target, output;
  std::optional<double> probability;  ///< probability of the output, if it is a label
};

/// Replaces the file; without outputs, removes it.
void write_outputs(const RunFolder& run, const std::vector<SampleOutput>& outputs);
/// The outputs of a run; empty if the file is missing. Throws Error(bad_input), naming the line, if
/// it is damaged.
std::vector<SampleOutput> read_outputs(const RunFolder& run);

}  // namespace heed
