#pragma once
/// Models of the Python library transformers (huggingface.co/docs/transformers): which class computes what
/// a run's model computes, with the names and shapes of its tensors.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/exchange/model_parts.h"

HEED_BEGIN

struct HuggingFaceModel {
  std::string architecture;                  ///< name of the class, such as GPT2LMHeadModel
  nlohmann::ordered_json config;             ///< config.json
  nlohmann::ordered_json generation_config;  ///< generation_config.json; null: none
  std::vector<MappedTensor> parts;           ///< model.safetensors
};

/// The model of a run as a model of transformers; `ids` are those of the target's vocabulary. Throws
/// Error(usage) that lists, for each class of the run's task, the keys whose values the class does not
/// support.
HuggingFaceModel huggingface_model(const Config& config, const VocabularySizes& vocabulary,
                                   const SpecialIds& ids = {});

HEED_END
