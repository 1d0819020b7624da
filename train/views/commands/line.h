#pragma once
/// Functions shared by the commands that show how a model processes one line.
#include <optional>
#include <string>
#include <vector>

#include "train/commands/trained_model.h"

HEED_BEGIN

/// Throws Error(bad_input), naming `option`, if its value `text` is not valid UTF-8.
void require_utf8(const std::string& option, const std::string& text);

/// The names of the attention layers that `layer` (--layer) selects; all if it is empty. Throws the
/// errors of attention_layers, and Error(usage) if `layer` selects none, or if the layers have no
/// head with the number `head` (--head).
std::vector<std::string> chosen_layers(const Model& model, const Config& config,
                                       const std::string& layer, std::optional<std::int64_t> head);

/// "the last 32 of 500" if the model is a language model and the input has more tokens than
/// model.context; else empty.
std::string tokens_read(const TrainedModel& trained, const std::string& input);

HEED_END
