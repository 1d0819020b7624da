#pragma once
/// A summary of a config before training: its layers, the work of a step and the memory required.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/tokenizers/tokenizer.h"
#include "train/config/config.h"
#include "train/views/report/memory_estimate.h"

namespace heed {

/// The vocabulary sizes and their source.
struct Vocabulary {
  VocabularySizes sizes;
  std::string basis;  ///< "from the training data", "a guess: …"
};

struct LayerSummary {
  std::string name;
  std::vector<std::string> parameters;  ///< "weight [96, 96]"
  std::int64_t values = 0;              ///< number of values of all parameters of the layer
};

struct ModelSummary {
  Vocabulary vocabulary;
  StepWork work;
  std::vector<LayerSummary> layers;
  std::int64_t parameters = 0;  ///< number of values of all layers
  MemoryEstimate memory;
  double machine = 0;  ///< machine_memory()

  nlohmann::json json() const;
  std::string text() const;
};

/// Summarises a config. `run_tokenizers` are the tokenizers of a run; if unset, tokenizers are
/// loaded or, if that is fast, trained on the training data. Without tokenizers or data, the
/// vocabulary sizes or the work of a step are estimated. If bench.sequences is above 0 and
/// `run_tokenizers` is unset, they are those of the synthetic batch of `heed bench`. Each `basis`
/// names the source of its values.
ModelSummary summarize_model(const Config& config, const std::optional<Tokenizers>& run_tokenizers);

}  // namespace heed
