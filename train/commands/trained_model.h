#pragma once
/// A run folder opened for use: evaluation, generation, scoring.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/batches/dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/models/model.h"
#include "train/config/config.h"

HEED_BEGIN

struct TrainedModel {
  Config config;
  Tokenizers tokenizers;
  std::filesystem::path weights;  ///< the folder they came from
  std::unique_ptr<Generative> model;

  /// `name` as in find_weights. Throws Error(bad_input) where something is missing or does not fit.
  static TrainedModel open(const std::string& run, const std::vector<std::string>& overrides,
                           const std::string& name);

  /// A line as the model was trained to see it.
  std::string prepared(const std::string& line) const;
};

HEED_END
