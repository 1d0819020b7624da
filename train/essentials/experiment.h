#pragma once
/// An experiment, read from YAML. The keys are some of those of `heed train`, so both programs can
/// read the same file; a key or value that this program does not support is an error.
#include <cstdint>
#include <string>

#include "nn/reference/transformer.h"

HEED_BEGIN
namespace reference {

struct Experiment {
  std::string task = "seq2seq";  ///< seq2seq or lm
  std::uint64_t seed = 1;
  std::string train_source, train_target;  ///< files with one sample per line
  std::string valid_source, valid_target;
  std::string train_text, valid_text;  ///< lm: files of running text
  Sizes model;
  std::int64_t context = 256;  ///< lm: number of tokens in a window
  double lr = 1e-3;            ///< the peak learning rate, at the end of the warmup
  std::int64_t warmup = 1000, steps = 2000;
  std::int64_t batch_tokens = 2048;  ///< number of labels in a batch, approximately
  double label_smoothing = 0.1;
  std::int64_t max_length = 128;  ///< maximum number of generated tokens
};

/// Throws Error(usage) if the file cannot be read or contains an invalid key or value.
Experiment read_experiment(const std::string& file);

}  // namespace reference
HEED_END
