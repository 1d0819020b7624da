#pragma once
/// A model card: the README.md of a model on a hub, from the records of its run.
#include <filesystem>
#include <string>

#include "train/config/config.h"
#include "train/run/run_folder.h"

namespace heed {

/// Markdown with the origin of the model, its results on the test data and its config. The licence
/// and the terms of the data are left to fill in, because heed does not know them. `chosen_by_run`: the
/// weights are those that the run has evaluated.
std::string model_card(const RunFolder& run, const Config& config, const std::string& architecture,
                       const std::string& weights, bool chosen_by_run);

/// Whether a file is a model card that heed wrote.
bool is_model_card(const std::string& text);

/// Whether the README.md of a folder is one.
bool has_model_card(const std::filesystem::path& folder);

}  // namespace heed
