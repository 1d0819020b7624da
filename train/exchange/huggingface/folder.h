#pragma once
/// The files of a folder for transformers besides the weights.
#include <filesystem>

#include "train/exchange/export.h"
#include "train/exchange/huggingface/model.h"

HEED_BEGIN

/// Writes the configs, the tokenizer and the model card.
void write_small_files(const ExportedModel& exported, HuggingFaceModel model,
                       const std::filesystem::path& folder);

HEED_END
