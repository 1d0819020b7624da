#pragma once
/// Tokenizers in the format of the library tokenizers (github.com/huggingface/tokenizers), version 1.0.
#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizers/tokenizer.h"

namespace heed {

struct TokenizerJsonOptions {
  bool start_token = false;  ///< <s> precedes each text, as for a classifier
  bool end_token = false;    ///< </s> follows each text, as in the sources of encoders
  bool lowercase = false;    ///< texts are converted to lower case first (data.lowercase)
};

/// tokenizer.json of a tokenizer that heed made (imported ones contain theirs). The ids of a text equal
/// those of Tokenizer::encode, except for texts that contain the name of a special piece, such as
/// "</s>", which becomes its id.
nlohmann::ordered_json tokenizer_json(const Tokenizer& tokenizer,
                                      const TokenizerJsonOptions& options);

/// tokenizer_config.json. `max_length`: the maximum number of tokens; 0: no limit.
nlohmann::ordered_json tokenizer_config_json(const Tokenizer& tokenizer, std::int64_t max_length);

}  // namespace heed
