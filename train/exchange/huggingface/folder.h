#pragma once
/// The files of a folder for transformers besides the weights.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "train/exchange/export.h"
#include "train/exchange/huggingface/model.h"

HEED_BEGIN

/// The configs and tokenizers: names, such as target/tokenizer.json, and texts.
std::vector<std::pair<std::string, std::string>> small_files(const ExportedModel& exported,
                                                             HuggingFaceModel model);

/// Writes them and the model card.
void write_small_files(const ExportedModel& exported, const HuggingFaceModel& model,
                       const std::filesystem::path& folder);

HEED_END
