#pragma once
/// Shared by the commands that show how a model processes one line.
#include <optional>
#include <string>
#include <vector>

#include "train/commands/trained_model.h"

HEED_BEGIN

/// Throws Error(bad_input) if the text of this option is not UTF-8.
void require_utf8(const std::string& option, const std::string& text);

/// Whether the model reads a source and an output.
bool reads_pairs(const Task& task);

/// The layers that --layer names, all if it is empty, of those that compute attention weights. Throws
/// Error(usage) if there are none, or if --head is not one of their heads.
std::vector<std::string> chosen_layers(const Model& model, const Config& config,
                                       const std::string& layer, std::optional<std::int64_t> head);

/// "the last 32 of 500", if a language model reads no more of the tokens of the line; else empty.
std::string tokens_read(const TrainedModel& trained, const std::string& input);

HEED_END
