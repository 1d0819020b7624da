#include "train/tasks/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/base/sha256.h"
#include "autograd/kernels/gemm/bf16.h"
#include "train/tasks/least_memory.h"

namespace heed {

std::string precision_note(Precision precision, std::string_view key) {
  if (precision != Precision::bf16) return "";  // and oneDNN is not even loaded
  const std::string& obstacle = kernels::bf16_obstacle();
  if (obstacle.empty()) return "";
  return fmt::format("note: {} is bf16, but {}; going on in float32", key, obstacle);
}

BatchOptions batch_options(const Config& config) {
  BatchOptions options;
  options.batch_tokens = config.train.batch_tokens;
  options.batch_sequences = config.train.batch_sequences;
  options.context = context_of(config);
  options.seed = config.seed;
  return options;
}

EvaluationLimits evaluation_limits(const Config& config) {
  EvaluationLimits limits;
  if (config.model.positions == PositionKind::learned)
    limits.positions = config.model.max_positions;
  limits.longest = std::max(limits.longest, config.data.max_length) + 1;
  return limits;
}

namespace {

/// SHA-256 of what training sees of a split: ids, and where sequences end. Nothing of an empty one.
std::string digest(const Dataset& data) {
  if (data.size() == 0 && data.stream.empty()) return "";
  Sha256 sum;
  for (const Sequences* side : {&data.source, &data.target}) {
    sum.update(std::as_bytes(std::span(side->ids)));
    sum.update(std::as_bytes(std::span(side->offsets)));
  }
  sum.update(std::as_bytes(std::span(data.stream)));
  return sum.hex();
}

}  // namespace

VocabularySizes sizes_of(const Tokenizers& tokenizers) {
  return {tokenizers.source->size(), tokenizers.target->size(), tokenizers.shared()};
}

ExperimentData load_data(const Config& config, const Tokenizers* tokenizers) {
  const bool lm = config.task == Task::lm;
  const Corpus corpus = read_corpus(config.data, lm, config.seed);
  ExperimentData data;
  data.tokenizers = tokenizers != nullptr
                        ? *tokenizers
                        : make_tokenizers(config.tokenizer, corpus.train, config.seed);
  const auto encode = [&](const Split& split, bool training) {
    TokenizeOptions options;
    options.training = training;
    options.max_length = config.data.max_length;
    options.keep_lines = !training;
    return tokenize(split, *data.tokenizers.source, *data.tokenizers.target, options,
                    static_cast<int>(config.threads));
  };
  data.train = encode(corpus.train, true);
  data.valid = encode(corpus.valid, false);
  data.test = encode(corpus.test, false);
  check_text(corpus.train, data.train, "data.train");
  check_evaluable(corpus.valid, data.valid, evaluation_limits(config), "data.valid");
  check_evaluable(corpus.test, data.test, evaluation_limits(config), "data.test");
  data.sums = {digest(data.train), digest(data.valid), digest(data.test)};
  const BatchStream anything_to_train_on(data.train, batch_options(config));  // throws where not
  return data;
}

}  // namespace heed

HEED_BEGIN

std::unique_ptr<Model> build_unfilled(Config config, const VocabularySizes& vocabulary) {
  config.model.init = InitKind::none;
  try {
    return build_model(config, vocabulary);
  } catch (const Error& error) {
    if (error.code != Exit::io) throw;
    throw Error(Exit::io, fmt::format("model: its weights alone do not fit this machine, which has "
                                      "{:.1f} GB ({})",
                                      machine_memory() / 1e9, error.what()));
  }
}

std::unique_ptr<Model> build_to_train(const Config& config, const VocabularySizes& vocabulary) {
  const double needed = least_memory(config, *build_unfilled(config, vocabulary)).total(),
               there = machine_memory();
  if (needed > there) {
    throw Error(Exit::io, fmt::format("model: its weights, gradients and moments alone take {:.1f} "
                                      "GB, and this machine has {:.1f} GB",
                                      needed / 1e9, there / 1e9));
  }
  return build_model(config, vocabulary);
}

HEED_END
