#pragma once
/// Models of llama.cpp (github.com/ggml-org/llama.cpp): which of its architectures computes what a run's
/// language model computes, with its values and tensors.
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "train/config/config.h"
#include "train/exchange/gguf/gguf_file.h"
#include "train/exchange/model_map.h"

HEED_BEGIN

struct GgufModel {
  std::string architecture;  ///< in llama.cpp, such as gpt2
  GgufMetadata metadata;
  std::vector<MappedTensor> parts;
};

/// Throws Error(usage) that lists, for each architecture, the keys whose values it does not support.
GgufModel gguf_model(const Config& config, const Tokenizer& tokenizer);

/// The type of a tensor in a file of this precision: vectors and the table of positions are float32,
/// as in llama.cpp's own files; of int8 also float16, where rows are not whole blocks of q8_0.
GgufType gguf_type(const TensorView& tensor, std::string_view precision);

HEED_END
