#pragma once
/// Warnings about data from which a model cannot learn, or that cannot judge it, as intended.
#include <string>
#include <vector>

#include "train/tasks/data.h"

namespace heed {

/// One sentence for each finding, with the key, the finding and a remedy: a part of a mixture
/// without samples, text that the tokenizer does not know, validation or test data that occur in the
/// training data, and labels that are all equal. `corpus` contains the lines of `data`.
std::vector<std::string> data_warnings(const Config& config, const Corpus& corpus,
                                       const ExperimentData& data);

}  // namespace heed
