#pragma once
/// What an experiment consists of, in memory: the data as tokens, the tokenizers, the model.
#include <filesystem>
#include <memory>

#include "data/batcher.h"
#include "data/corpus.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "nn/model.h"
#include "train/config.h"

namespace heed {

struct ExperimentData {
  Tokenizers tokenizers;
  Dataset train, valid, test;
};

/// Reads the files, makes or loads the tokenizers, encodes. `tokenizers`, where given, are used as
/// they are.
ExperimentData load_data(const Config& config, const Tokenizers* tokenizers = nullptr);

/// What to tell people where the precision that a key asks for cannot be had on this machine; empty
/// where it can.
std::string precision_note(Precision precision, std::string_view key);
/// What may be asked of the config's model: lines of 4,096 tokens and their end, or longer where it
/// was trained on longer ones.
EvaluationLimits evaluation_limits(const Config& config);
/// How training data are cut into batches.
BatchOptions batch_options(const Config& config);

/// Tokens of context of a window; 0 for seq2seq.
inline std::int64_t context_of(const Config& config) {
  return config.task == Task::lm ? config.model.context : 0;
}

}  // namespace heed

HEED_BEGIN

/// The model that the config describes, freshly initialised.
inline std::unique_ptr<Model> build_model(const Config& config, std::int64_t source_vocabulary,
                                          std::int64_t target_vocabulary, bool shared) {
  if (config.task == Task::lm)
    return make_language_model(config.model, target_vocabulary, config.seed);
  return make_seq2seq(config.model, source_vocabulary, target_vocabulary, shared, config.seed);
}
inline std::unique_ptr<Model> build_model(const Config& config, const Tokenizers& tokenizers) {
  return build_model(config, tokenizers.source->size(), tokenizers.target->size(),
                     tokenizers.shared());
}

HEED_END
