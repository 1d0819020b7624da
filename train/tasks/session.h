#pragma once
/// What an experiment consists of, in memory: the data as tokens, the tokenizers, the model.
#include <filesystem>
#include <memory>

#include "data/batches/batcher.h"
#include "data/batches/dataset.h"
#include "data/sources/corpus.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/models/model.h"
#include "train/config/config.h"

namespace heed {

struct ExperimentData {
  Tokenizers tokenizers;
  Dataset train, valid, test;
  /// SHA-256 of what training sees of each split: ids, and where sequences end. "" of an empty one.
  struct Sums {
    std::string train, valid, test;
  } sums;
};

/// Tokens that a model knows.
struct VocabularySizes {
  std::int64_t source = 0, target = 0;
  bool shared = true;
};
VocabularySizes sizes_of(const Tokenizers& tokenizers);

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

/// The model that the config describes, freshly initialised. (Here, for `heed gradcheck` builds it in
/// float64.)
inline std::unique_ptr<Generative> build_model(const Config& config,
                                               const VocabularySizes& vocabulary) {
  if (config.task == Task::lm)
    return make_language_model(config.model, vocabulary.target, config.seed);
  return make_seq2seq(config.model, vocabulary.source, vocabulary.target, vocabulary.shared,
                      config.seed);
}
/// The same, its weights yet to be written.
std::unique_ptr<Generative> build_unfilled(Config config, const VocabularySizes& vocabulary);
/// A model to train. Throws Error(io), before it takes the memory, where weights, gradients and
/// moments alone need more than the machine has.
std::unique_ptr<Generative> build_to_train(const Config& config, const VocabularySizes& vocabulary);

HEED_END
