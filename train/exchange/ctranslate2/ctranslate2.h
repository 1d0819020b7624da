#pragma once
/// Models of CTranslate2 (opennmt.net/CTranslate2): the tensors of its Transformer specifications as functions
/// of a run's model.
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "nn/models/architecture.h"
#include "train/config/config.h"
#include "train/exchange/ctranslate2/ctranslate2_file.h"
#include "train/exchange/model_map.h"

HEED_BEGIN

struct CTranslate2Model {
  std::string specification;  ///< TransformerSpec or TransformerDecoderSpec
  std::uint32_t revision = 0;
  nlohmann::ordered_json config;  ///< config.json
  std::vector<MappedTensor> parts;
  TensorAliases aliases;
  /// Attributes, which the file stores as tensors of rank 0.
  std::vector<std::pair<std::string, std::variant<std::int8_t, std::int16_t, std::int32_t, float>>>
      attributes;
};

/// Throws Error(usage) that lists, for each form of the task's models, the keys whose values CTranslate2
/// does not support.
CTranslate2Model ctranslate2_model(const Config& config, const VocabularySizes& vocabulary);

/// A matrix in int8, with a factor for each row: row r of the matrix is about values[r] / scales[r].
struct ScaledRows {
  std::vector<std::int8_t> values;
  std::vector<float> scales;  ///< 127 / max |x| of the row; 1 for a row of zeros
};
ScaledRows ctranslate2_int8(const TensorView& matrix);

HEED_END
