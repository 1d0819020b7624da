#pragma once
/// Tokenizers of other programs: byte-level BPE (GPT-2, Llama 3) and WordPiece (BERT), in the format of
/// the library tokenizers (tokenizer.json).
///
/// In a run folder, the file begins with a line that contains an ImportedIds as JSON, followed by
/// tokenizer.json, byte for byte.
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizers/tokenizer.h"

namespace heed {

struct ImportedIds {
  SpecialIds special{-1, -1, -1};
  std::int32_t mask = -1;    ///< <mask>; −1: none
  bool starts_text = false;  ///< <s> precedes every text of a language model
  std::int64_t size = 0;     ///< of the model's vocabulary, which may have ids without a piece
};

/// A tokenizer from the text of tokenizer.json. `from`, the file, begins messages. Throws
/// Error(bad_input) for text that heed would not encode as the library does, naming the key, and for
/// ids that do not exist.
std::unique_ptr<Tokenizer> make_imported(const std::string& json, const ImportedIds& ids,
                                         const std::string& from);
/// Reads a file that Tokenizer::save wrote.
std::unique_ptr<Tokenizer> load_imported(const std::filesystem::path& file);
/// tokenizer.json in the content of such a tokenizer.
std::string_view json_of_imported(std::string_view content);

}  // namespace heed
